"""Inserts: every field is stored, and jobs keep their order."""

import msgspec
import pytest

from holdfast.errors import Rejected
from holdfast.model.job import InsertResult, RetryRule, Unique
from holdfast.model.lane import Lane
from holdfast.model.outcome import Failed, Failure
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant, days, seconds
from tests.support.builders import (
    a_job,
    as_dict,
    enter,
    fields,
    hold,
    lane_of,
    put,
    read,
    read_all,
    report,
    roll_back,
    share,
    some_jobs,
    take,
)

COMPUTED = ("id", "payload", "max_attempts")
SUBMITTED = ("tenant", "queue", "type", "priority", "cost", "timeout", "deadline", "concurrency_key", "idempotency_key")

RICH = {
    "tenant": "t.e:n/a@n+t-" + "x" * 116,
    "queue": "q" * 128,
    "type": "Mail.Send:v2/a@b+c-d",
    "payload": '{"name": "Zoë 🐙", "zero": "\\u0000", "q": "it\'s 100% \\\\ ok"}'.encode(),
    "max_attempts": 1_000,
    "cost": 1_000_000,
    "timeout": days(366),
    "deadline": Instant(253_402_300_799_999_999),
    "retry": RetryRule(base=seconds(2), cap=days(1), jitter=0.25, delays=(Duration(1), Duration(2_500_001))),
    "tags": ("grün", "🐙 'quoted' \"twice\"", "100%"),
    "concurrency_key": "account 42 ",
    "idempotency_key": "~" * 255,
    "fingerprint": bytes(range(16)),
    "unique": Unique("u" * 40, within=days(1)),
}


async def test_a_plain_job_is_ready_at_once(manual_store, clock):
    job = a_job()
    (inserted,) = await put(manual_store, job)
    assert inserted == InsertResult(job.id, clock.now)
    stored = await read(manual_store, job)
    assert fields(stored, "status", "fence", "worker", "attempts", "releases", "generation") == (
        Status.READY, 0, None, 0, 0, 0,
    )  # fmt: skip
    assert fields(stored, "created_at", "started_at", "finished_at", "result", "reason", "attempt_log") == (
        clock.now, None, None, None, None, None,
    )  # fmt: skip


async def test_fields_that_are_not_set_are_stored_as_null(manual_store):
    stored = await read(manual_store, (await put(manual_store, a_job()))[0])
    assert fields(stored, "timeout", "deadline", "retry", "tags", "concurrency_key", "idempotency_key") == (None,) * 6


@pytest.mark.parametrize("priority", [-1_000, -1, 0, 1_000])
async def test_every_field_of_a_job_is_read_as_it_was_written_from_every_table(manual_store, clock, priority):
    worker = await enter(manual_store)
    job = a_job(**RICH, priority=priority)
    await put(manual_store, job)

    async def matches(status):
        stored = await read(manual_store, job)
        assert stored.status is status
        assert fields(stored, *COMPUTED) == fields(job, *COMPUTED)
        assert fields(stored, *SUBMITTED) == fields(job.spec, *SUBMITTED)
        assert msgspec.json.decode(stored.retry, type=RetryRule) == job.spec.retry
        assert msgspec.json.decode(stored.tags) == list(job.spec.tags)
        assert stored.created_at == clock.now
        return stored

    await matches(Status.READY)
    (held,) = await take(manual_store, worker, lane_of(job))
    assert await matches(Status.RUNNING) == held
    await report(manual_store, held, Failed(Failure("E", "m"), retryable=False))
    await matches(Status.DEAD)

    done = a_job(**(RICH | {"idempotency_key": None, "unique": None}), priority=priority)
    await put(manual_store, done)
    (held,) = await take(manual_store, worker, lane_of(done))
    await report(manual_store, held)
    stored = await read(manual_store, done)
    gone = {"status", "worker", "finished_at", "result"}
    assert {k: v for k, v in as_dict(stored).items() if k not in gone} == {
        k: v for k, v in as_dict(held).items() if k not in gone
    }


async def test_a_payload_of_the_maximum_size_is_read_byte_by_byte(store):
    payload = msgspec.json.encode("ß🐙\n" * 37_000)
    payload += b" " * (256 * 1024 - len(payload))
    job = a_job(payload=payload)
    await put(store, job)
    assert (await read(store, job)).payload == payload
    (held,) = await take(store, await enter(store))
    assert held.payload == payload
    await report(store, held)
    assert (await read(store, job)).payload == payload


async def test_a_delayed_job_waits_until_it_is_due(manual_store, clock):
    job = a_job(delay=seconds(90))
    await put(manual_store, job)
    stored = await read(manual_store, job)
    assert (stored.status, stored.scheduled_at) == (Status.SCHEDULED, clock.now + seconds(90))


async def test_a_job_scheduled_for_an_instant_waits_for_it(manual_store, clock):
    at = Instant(clock.now + 1)
    job = a_job(scheduled_at=at)
    await put(manual_store, job)
    stored = await read(manual_store, job)
    assert (stored.status, stored.scheduled_at) == (Status.SCHEDULED, at)


async def test_a_job_can_be_scheduled_for_the_last_possible_instant(manual_store):
    job = a_job(scheduled_at=Instant(253_402_300_799_999_999))
    await put(manual_store, job)
    assert (await read(manual_store, job)).status is Status.SCHEDULED


@pytest.mark.parametrize("late", [0, 1, days(400)])
async def test_a_job_whose_scheduled_time_has_passed_is_ready(manual_store, clock, late):
    at = Instant(clock.now - late)
    job = a_job(scheduled_at=at)
    await put(manual_store, job, a_job(delay=Duration(0), queue="other"))
    stored = await read(manual_store, job)
    assert (stored.status, stored.scheduled_at) == (Status.READY, at)
    assert (
        len(await take(manual_store, await enter(manual_store), Lane("mail", "acme", 0), Lane("other", "acme", 0))) == 2
    )


async def test_ten_thousand_jobs_of_a_batch_are_claimed_in_its_order(store):
    """S3: jobs are claimed in the order in which they were submitted."""
    jobs = some_jobs(10_000)
    answers = await put(store, *jobs)
    assert [answer.id for answer in answers] == [job.id for job in jobs]
    worker = await enter(store)
    claimed = [await take(store, worker, share(max_jobs=2_500)) for _ in range(5)]
    expected = [{job.id for job in jobs[start : start + 2_500]} for start in range(0, 12_500, 2_500)]
    assert [{job.id for job in batch} for batch in claimed] == expected


async def test_jobs_of_later_batches_are_claimed_later(store):
    first, second = a_job(), a_job()
    await put(store, second)
    await put(store, first)
    worker = await enter(store)
    order = [(await take(store, worker, share(max_jobs=1)))[0].id for _ in range(2)]
    assert order == [second.id, first.id]


async def test_a_batch_may_contain_jobs_of_many_kinds(manual_store):
    jobs = [
        a_job(),
        a_job(delay=seconds(5)),
        a_job(queue="other", priority=7, tags=("a",)),
        a_job(idempotency_key="k", fingerprint=b"1"),
        a_job(tenant="umbrella", unique=Unique("u")),
    ]
    answers = await put(manual_store, *jobs)
    assert [answer.id for answer in answers] == [job.id for job in jobs]
    stored = {job.id: job for job in await read_all(manual_store, [job.id for job in jobs])}
    assert [stored[job.id].status for job in jobs] == [Status.READY, Status.SCHEDULED, *[Status.READY] * 3]


async def test_a_batch_with_an_existing_id_is_rejected_as_a_whole(store):
    taken = a_job()
    await put(store, taken)
    others = [a_job(idempotency_key="k"), a_job(unique=Unique("u")), a_job()]
    with pytest.raises(Rejected):
        await put(store, *others, a_job(id=taken.id, payload=b"2"))
    assert await read_all(store, [job.id for job in others]) == []
    assert (await read(store, taken)).payload == b"{}"
    again = await put(store, a_job(idempotency_key="k"), a_job(unique=Unique("u")))
    assert [answer.repeats for answer in again] == [None, None]


async def test_a_single_statement_rejects_an_existing_id_too(store):
    job = a_job()
    await put(store, job)
    for _ in range(20):  # more often than there are connections: none is left unusable
        with pytest.raises(Rejected):
            await store.single(lambda tx: tx.insert([job], key_retention=days(1)))
    assert (await read(store, job)).status is Status.READY


async def test_a_batch_with_a_duplicate_id_is_rejected(store):
    job = a_job()
    with pytest.raises(Rejected):
        await put(store, job, job)
    assert await read_all(store, [job.id]) == []


async def test_an_insert_that_is_rolled_back_leaves_nothing(store):
    job = a_job(idempotency_key="k", unique=Unique("u"))
    await roll_back(store, lambda tx: tx.insert([job], key_retention=days(1)))
    assert await read_all(store, [job.id]) == []
    assert (await put(store, a_job(idempotency_key="k", unique=Unique("u"))))[0].repeats is None


async def test_names_that_differ_in_case_or_spaces_are_different(store):
    """Collations must not equate names that the engine distinguishes."""
    jobs = [a_job(tenant=tenant, queue=queue) for tenant in ("acme", "Acme") for queue in ("mail", "MAIL")]
    await put(store, *jobs)
    worker = await enter(store)
    for job in jobs:
        assert [held.id for held in await take(store, worker, lane_of(job))] == [job.id]


async def test_ids_sort_by_age_regardless_of_their_random_bytes(store):
    jobs = await hold(store, await enter(store), n=20)
    found = await store.run(lambda tx: tx.get([job.id for job in reversed(jobs)]))
    assert sorted(job.id for job in found) == [job.id for job in jobs]
