"""Submission: concurrent callers share transactions, and each gets its own durable receipt."""

import asyncio
import time

import pytest

from holdfast.engine.engine import Engine
from holdfast.engine.submitting import submitter
from holdfast.errors import (
    DuplicateJob,
    IdempotencyMismatch,
    Invalid,
    InvalidBatch,
    NotFound,
    OutcomeUnknown,
    Rejected,
    Unavailable,
)
from holdfast.model.ids import new_job_id
from holdfast.model.job import JobFilter, JobSpec, Page, UniqueSpec
from holdfast.model.state import Status
from tests.support.builders import a_job
from tests.support.interleave import BlockedStore, CountingStore, FaultyStore, after, before


def mail(number=0, **options):
    return JobSpec(type="send", payload={"to": number}, **options)


async def everything(store):
    return await store.read(lambda tx: tx.find(JobFilter(), Page(10_000)))


@pytest.fixture
async def engine(store):
    return await Engine.open(store)


async def engine_on(around, *faults):
    """Open an engine whose set of limited tenants never expires, so that only submissions use the store."""
    engine = await Engine.open(around)
    at = time.monotonic()
    engine.submitter.limited.monotonic = lambda: at
    around.faults = list(faults)
    around.transactions = 0
    return engine


async def test_two_hundred_concurrent_submissions_share_a_few_transactions(store):
    """S1: every receipt names a stored job."""
    counting = CountingStore(store)
    engine = await engine_on(counting)
    receipts = await asyncio.gather(*(engine.jobs.submit(mail(number)) for number in range(200)))
    assert {receipt.id for receipt in receipts} == {job.id for job in await everything(store)}
    assert len({receipt.id for receipt in receipts}) == 200
    assert not any(receipt.replayed for receipt in receipts)
    assert counting.transactions <= 20


async def test_each_caller_gets_the_receipt_of_its_own_job(engine):
    receipts = await asyncio.gather(*(engine.jobs.submit(mail(number)) for number in range(100)))
    jobs = [await engine.jobs.get(receipt.id) for receipt in receipts]
    assert [job.payload for job in jobs] == [b'{"to":%d}' % number for number in range(100)]


async def test_a_lone_submission_is_inserted_at_once(store):
    counting = CountingStore(store)
    await (await engine_on(counting)).jobs.submit(mail())
    assert counting.transactions == 1


async def test_a_rejected_row_fails_only_its_own_submission(store, monkeypatch):
    engine = Engine(store)
    taken = (await engine.jobs.submit(mail())).id
    ids = iter([new_job_id(), new_job_id(), taken, new_job_id(), taken, new_job_id()])
    monkeypatch.setattr(submitter, "new_job_id", lambda _at_ms=None: next(ids))
    results = await asyncio.gather(*(engine.jobs.submit(mail(number)) for number in range(6)), return_exceptions=True)
    assert [isinstance(result, Rejected) for result in results] == [False, False, True, False, True, False]
    assert len(await everything(store)) == 5


async def test_no_caller_gets_a_receipt_before_the_commit(store):
    """S1"""
    held = BlockedStore(store)
    engine = Engine(held)
    tasks = [asyncio.create_task(engine.jobs.submit(mail(number))) for number in range(50)]
    await held.asked.wait()
    await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)
    assert await everything(store) == []
    held.let_go.set()
    assert len({receipt.id for receipt in await asyncio.gather(*tasks)}) == 50


async def test_a_cancelled_caller_does_not_affect_other_submissions(store):
    held = BlockedStore(store)
    engine = Engine(held)
    tasks = [asyncio.create_task(engine.jobs.submit(mail(number))) for number in range(10)]
    await held.asked.wait()
    tasks[3].cancel()
    held.let_go.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(result, asyncio.CancelledError) for result in results] == [number == 3 for number in range(10)]
    stored = {job.id for job in await everything(store)}
    assert {result.id for number, result in enumerate(results) if number != 3} <= stored


async def test_every_caller_gets_an_error_while_the_database_is_unavailable(store):
    engine = await engine_on(FaultyStore(store), *[before(Unavailable)] * 50)
    results = await asyncio.gather(*(engine.jobs.submit(mail(number)) for number in range(50)), return_exceptions=True)
    assert {type(result) for result in results} == {Unavailable}
    assert await everything(store) == []


async def test_concurrent_submissions_with_one_key_create_one_job(engine, store):
    """S10, P28"""
    receipts = await asyncio.gather(*(engine.jobs.submit(mail(idempotency_key="order-1")) for _ in range(100)))
    (job,) = await everything(store)
    assert {receipt.id for receipt in receipts} == {job.id}
    assert sum(not receipt.replayed for receipt in receipts) == 1


async def test_a_key_reused_with_another_body_is_rejected(engine, store):
    """S10"""
    submissions = (engine.jobs.submit(mail(number, idempotency_key="order-1")) for number in range(10))
    results = await asyncio.gather(*submissions, return_exceptions=True)
    assert [isinstance(result, IdempotencyMismatch) for result in results] == [False] + [True] * 9
    assert len(await everything(store)) == 1


async def test_keys_of_different_tenants_are_independent(engine, store):
    """S10, S23"""
    submissions = (engine.jobs.submit(mail(tenant=f"t{n}", idempotency_key="order-1")) for n in range(10))
    assert len({receipt.id for receipt in await asyncio.gather(*submissions)}) == 10


async def test_a_duplicate_of_a_unique_job_is_returned_or_rejected_as_requested(engine):
    unique = UniqueSpec()
    first = await engine.jobs.submit(mail(unique=unique))
    again = await engine.jobs.submit(mail(unique=unique))
    assert (again.id, again.replayed) == (first.id, True)
    with pytest.raises(DuplicateJob) as rejected:
        await engine.jobs.submit(mail(unique=UniqueSpec(on_conflict="reject")))
    assert rejected.value.job_id == str(first.id)
    assert not (await engine.jobs.submit(mail(1, unique=unique))).replayed


async def test_an_invalid_submission_fails_alone(engine, store):
    submissions = [engine.jobs.submit(mail(number, priority=5_000 if number == 7 else 0)) for number in range(20)]
    results = await asyncio.gather(*submissions, return_exceptions=True)
    assert [number for number, result in enumerate(results) if isinstance(result, Invalid)] == [7]
    assert len(await everything(store)) == 19


async def test_a_batch_is_inserted_as_a_whole_or_not_at_all(engine, store):
    """F06"""
    with pytest.raises(InvalidBatch) as rejected:
        await engine.jobs.submit_many([mail(), mail(priority=5_000), mail(), mail(cost=0)])
    assert sorted(rejected.value.faults) == [1, 3]
    await engine.jobs.submit(mail(1, idempotency_key="order-1"))
    with pytest.raises(InvalidBatch) as rejected:
        await engine.jobs.submit_many([mail(), mail(), mail(2, idempotency_key="order-1")])
    assert sorted(rejected.value.faults) == [2]
    with pytest.raises(InvalidBatch) as rejected:
        await engine.jobs.submit_many([mail(idempotency_key="k"), mail(), mail(idempotency_key="k")])
    assert sorted(rejected.value.faults) == [2]
    assert len(await everything(store)) == 1


@pytest.mark.slow
async def test_the_receipts_of_a_batch_are_in_its_order(engine, store):
    receipts = await engine.jobs.submit_many([mail(number) for number in range(10_000)])
    jobs = {job.id: job for job in await everything(store)}
    assert [jobs[receipt.id].payload for receipt in receipts] == [b'{"to":%d}' % number for number in range(10_000)]
    with pytest.raises(InvalidBatch):
        await engine.jobs.submit_many([mail()] * 10_001)


async def test_an_empty_batch_returns_no_receipts(engine):
    assert await engine.jobs.submit_many([]) == []


async def test_a_keyed_submission_creates_one_job_after_a_lost_commit_reply(store):
    """S2: the commit had happened."""
    engine = await engine_on(FaultyStore(store), after(OutcomeUnknown))
    receipt = await engine.jobs.submit(mail(idempotency_key="order-1"))
    (job,) = await everything(store)
    assert (receipt.id, receipt.replayed) == (job.id, False)
    again = await engine.jobs.submit(mail(idempotency_key="order-1"))
    assert (again.id, again.replayed) == (job.id, True)


async def test_a_keyed_submission_creates_one_job_after_a_lost_commit_request(store):
    """S2: the commit had not happened."""
    engine = await engine_on(FaultyStore(store), before(OutcomeUnknown))
    receipt = await engine.jobs.submit(mail(idempotency_key="order-1"))
    (job,) = await everything(store)
    assert (receipt.id, receipt.replayed) == (job.id, False)


async def test_a_submission_without_key_is_found_after_a_lost_commit_reply(store):
    """S2"""
    engine = await engine_on(FaultyStore(store), after(OutcomeUnknown))
    receipts = await asyncio.gather(*(engine.jobs.submit(mail(number)) for number in range(20)))
    assert {receipt.id for receipt in receipts} == {job.id for job in await everything(store)}
    assert len(receipts) == 20


async def test_a_submission_without_key_that_is_not_found_has_an_unknown_outcome(store):
    """S2: it is reported neither as failed nor as done."""
    engine = await engine_on(FaultyStore(store), before(OutcomeUnknown))
    with pytest.raises(OutcomeUnknown):
        await engine.jobs.submit(mail())
    assert await everything(store) == []


async def test_a_batch_is_found_as_a_whole_after_a_lost_commit_reply(store):
    """S2, F06"""
    engine = await engine_on(FaultyStore(store), after(OutcomeUnknown))
    receipts = await engine.jobs.submit_many([mail(number) for number in range(10)])
    assert [receipt.id for receipt in receipts] == sorted(
        (job.id for job in await everything(store)), key=[receipt.id for receipt in receipts].index
    )
    with pytest.raises(OutcomeUnknown):
        await (await engine_on(FaultyStore(store), before(OutcomeUnknown))).jobs.submit_many([mail()])


@pytest.mark.parametrize("then", [OutcomeUnknown, Unavailable])
@pytest.mark.parametrize("key", [None, "order-1"])
async def test_a_submission_has_an_unknown_outcome_if_the_lookup_fails_too(store, key, then):
    """S2: an unknown outcome is not reported as a failure; a retry with the key finds the job."""
    engine = await engine_on(FaultyStore(store), after(OutcomeUnknown), *[before(then)] * 10)
    results = await asyncio.gather(*[engine.jobs.submit(mail(idempotency_key=key))], return_exceptions=True)
    assert [type(result) for result in results] == [OutcomeUnknown]
    (job,) = await everything(store)
    if key is not None:
        again = await Engine(store).jobs.submit(mail(idempotency_key=key))
        assert (again.id, again.replayed) == (job.id, True)


async def test_a_batch_has_an_unknown_outcome_if_the_lookup_fails_too(store):
    """S2"""
    engine = await engine_on(FaultyStore(store), after(OutcomeUnknown), *[before(Unavailable)] * 10)
    with pytest.raises(OutcomeUnknown):
        await engine.jobs.submit_many([mail(1), mail(2)])
    assert len(await everything(store)) == 2


async def test_ids_contain_the_database_time(manual_store, clock):
    """S24: a node with a wrong clock does not disturb the order of ids."""
    engine = await Engine.open(manual_store)
    receipt = await engine.jobs.submit(mail())
    assert abs((receipt.id.int >> 80) - clock.now // 1_000) < 60_000
    assert receipt.created_at == clock.now


@pytest.mark.slow
def test_ids_are_never_repeated():
    """F45"""
    assert len({new_job_id(1) for _ in range(200_000)}) == 200_000


async def test_getting_an_unknown_job_raises_not_found(engine):
    with pytest.raises(NotFound):
        await engine.jobs.get(a_job().id)


async def test_a_submitted_job_can_be_read_found_counted_cancelled_and_retried(engine):
    receipt = await engine.jobs.submit(mail())
    assert (await engine.jobs.get(receipt.id)).status is Status.READY
    assert [job.id for job in await engine.jobs.find(JobFilter(queue="default"))] == [receipt.id]
    assert [(count.status, count.jobs) for count in await engine.jobs.counts()] == [(Status.READY, 1)]
    assert await engine.jobs.cancel([receipt.id], reason="not wanted") == {receipt.id}
    assert await engine.jobs.counts() == []
    assert await engine.jobs.retry([receipt.id]) == {receipt.id}
    assert (await engine.jobs.get(receipt.id)).generation == 1
