"""Enqueuing from sync and async code."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from holdfast import (
    CONTEXT,
    Context,
    DuplicateJob,
    Holdfast,
    IdempotencyMismatch,
    Invalid,
    InvalidBatch,
    NotFound,
    PayloadTooLarge,
    Retry,
    SchemaMismatch,
    Status,
    Unique,
)
from holdfast.model.job import JobFilter, RetryRule
from holdfast.model.time import seconds

IN_A_YEAR = datetime.now(UTC) + timedelta(days=365)


@pytest.fixture
def welcome(app):
    @app.job(queue="mail", retry=Retry(max_attempts=7), timeout=30, priority=2, cost=3)
    async def welcome(user_id: int, name: str = "you", *, ctx: Context = CONTEXT) -> str:
        return f"welcome, {name}"

    return welcome


def count(app):
    return len(app._engines.run(lambda engine: engine.jobs.find(JobFilter())))


def test_a_job_is_stored_when_enqueue_returns(app, welcome):
    handle = welcome.enqueue(42)
    job = handle.job()
    assert (job.type, job.queue, job.priority, job.max_attempts, job.cost) == ("welcome", "mail", 2, 7, 3)
    assert (job.tenant, job.status, job.payload) == ("default", Status.READY, {"user_id": 42})
    assert not handle.replayed
    assert app.handle(str(handle.id)).job() == job
    assert welcome.handle(handle.id) == handle


async def test_a_job_is_stored_when_aenqueue_returns(app, welcome):
    handle = await welcome.aenqueue(user_id=42, name="Ann")
    assert (await handle.job()).payload == {"user_id": 42, "name": "Ann"}
    assert await handle.status() is Status.READY
    assert await app.ahandle(handle.id).job() == await handle.job()
    assert welcome.ahandle(handle.id) == handle
    await app.aclose()


async def test_sync_enqueue_works_on_an_event_loop_too(welcome):
    assert welcome.enqueue(42).status() is Status.READY


def test_an_invalid_call_submits_nothing(app, welcome):
    for call in ({"user_id": "x"}, {}, {"user_id": 1, "who": 2}):
        with pytest.raises(Invalid) as refused:
            welcome.enqueue(**call)
        assert refused.value.pointer.startswith("/payload/")
    assert count(app) == 0


async def test_an_invalid_async_call_submits_nothing(app, welcome):
    with pytest.raises(Invalid, match="user_id: expected int, got str"):
        await welcome.aenqueue("x")
    assert count(app) == 0


def test_values_that_json_cannot_represent_are_rejected_by_name(app):
    @app.job
    def work(anything, more=None):
        pass

    with pytest.raises(Invalid, match="a datetime is not JSON") as refused:
        work.enqueue({"when": IN_A_YEAR})
    assert refused.value.pointer == "/payload/anything/when"
    with pytest.raises(PayloadTooLarge):
        work.enqueue("x" * 300_000)


def test_options_apply_to_the_job(welcome):
    handle = welcome.options(
        at=IN_A_YEAR,
        tenant="acme",
        queue="slow",
        priority=-5,
        tags=["a", "b"],
        deadline=IN_A_YEAR + timedelta(hours=1),
        concurrency_key="user-42",
        timeout="1m",
        retry=Retry(max_attempts=2, delays=["1s", "5s"]),
        cost=9,
    ).enqueue(42)
    job = handle.job()
    assert (job.tenant, job.queue, job.priority, job.cost) == ("acme", "slow", -5, 9)
    assert (job.status, job.max_attempts, job.timeout) == (Status.SCHEDULED, 2, 60.0)
    assert job.scheduled_at == job.deadline - timedelta(hours=1) == IN_A_YEAR
    assert (job.concurrency_key, job.tags) == ("user-42", ["a", "b"])
    stored = welcome._engines.run(lambda engine: engine.jobs.get(handle.id))
    assert msgspec.json.decode(stored.retry, type=RetryRule) == RetryRule(delays=(seconds(1), seconds(5)))


async def test_a_delayed_job_is_scheduled(app, welcome):
    async with app:
        handle = await welcome.options(delay="5m").aenqueue(42)
        assert await handle.status() is Status.SCHEDULED


@pytest.mark.parametrize(
    "options, pointer",
    [
        ({"at": datetime(2030, 1, 1)}, "/scheduled_at"),  # noqa: DTZ001 - without a time zone on purpose
        ({"at": "2030-01-01"}, "/scheduled_at"),
        ({"deadline": datetime(2030, 1, 1)}, "/deadline"),  # noqa: DTZ001
        ({"delay": "soon"}, "/delay"),
        ({"delay": 1, "at": IN_A_YEAR}, "/delay"),
        ({"tags": "nightly"}, "/tags"),
        ({"tags": [""]}, "/tags/0"),
        ({"tenant": "not a name"}, "/tenant"),
        ({"queue": ""}, "/queue"),
        ({"priority": 5_000}, "/priority"),
        ({"cost": 0}, "/cost"),
        ({"max_attempts": 0}, "/max_attempts"),
        ({"timeout": 0}, "/timeout"),
        ({"idempotency_key": ""}, "/idempotency_key"),
        ({"concurrency_key": "\n"}, "/concurrency_key"),
        ({"unique": Unique(by="payload")}, "/unique/by"),
        ({"unique": Unique(within="x")}, "/unique/within"),
        ({"unique": Unique(on_conflict="explode")}, "/unique/on_conflict"),
    ],
)
def test_invalid_options_are_rejected_at_once(nowhere, options, pointer):
    @nowhere.job
    def work():
        pass

    with pytest.raises(Invalid) as refused:
        work.options(**options)
    assert refused.value.pointer == pointer


def test_a_connection_of_the_caller_is_not_supported_yet(nowhere):
    @nowhere.job
    def work():
        pass

    with pytest.raises(TypeError, match="connection"):
        work.options(connection=object())


def test_one_idempotency_key_creates_one_job(app, welcome):
    once = welcome.options(idempotency_key="w-42")
    first, again = once.enqueue(42), once.enqueue(42)
    assert (first.replayed, again.replayed, again.id) == (False, True, first.id)
    with pytest.raises(IdempotencyMismatch):
        once.enqueue(43)
    assert count(app) == 1


async def test_concurrent_submissions_with_one_key_create_one_job(app, welcome):
    async with app:
        once = welcome.options(idempotency_key="w-42")
        handles = await asyncio.gather(*(once.aenqueue(42) for _ in range(20)))
        assert len({handle.id for handle in handles}) == 1
        assert sum(not handle.replayed for handle in handles) == 1


def test_a_unique_job_exists_once_at_a_time(welcome):
    first = welcome.options(unique=True).enqueue(42)
    again = welcome.options(unique=True).enqueue(42)
    assert (again.id, again.replayed) == (first.id, True)
    assert not welcome.options(unique=True).enqueue(43).replayed
    by_user = Unique(by=["payload.user_id"], within="1h", on_conflict="reject")
    other = welcome.options(unique=by_user).enqueue(42, "Ann")
    with pytest.raises(DuplicateJob) as refused:
        welcome.options(unique=by_user).enqueue(42, "Bob")
    assert refused.value.job_id == str(other.id)


def test_enqueue_many_submits_all_jobs(app, welcome):
    handles = welcome.options(tenant="acme").enqueue_many([{"user_id": 1}, (2, "Ann"), [3]])
    assert [handle.job().payload for handle in handles] == [
        {"user_id": 1},
        {"user_id": 2, "name": "Ann"},
        {"user_id": 3},
    ]
    assert {handle.job().tenant for handle in handles} == {"acme"}
    assert welcome.enqueue_many([]) == []
    assert count(app) == 3


async def test_aenqueue_many_submits_all_jobs(app, welcome):
    async with app:
        handles = await welcome.aenqueue_many([(n,) for n in range(50)])
        assert len({handle.id for handle in handles}) == 50


def test_an_invalid_batch_names_every_fault_and_submits_nothing(app):
    @app.job
    def work(n: int, anything=None):
        pass

    calls = [(1,), ("x",), {}, {"n": 2, "m": 3}, "n", {"n": 1, "anything": float("nan")}, (7,)]
    with pytest.raises(InvalidBatch) as refused:
        work.enqueue_many(calls)
    faults = refused.value.faults
    assert {index: fault.pointer for index, fault in faults.items()} == {
        1: "/payload/n",
        2: "/payload/n",
        3: "/payload/m",
        4: "/payload",
        5: "/payload/anything",
    }
    with pytest.raises(InvalidBatch) as refused:
        work.enqueue_many([(1,), (2, float("nan"))])
    assert set(refused.value.faults) == {1}
    assert count(app) == 0


def test_a_batch_above_the_limit_is_rejected(welcome):
    with pytest.raises(InvalidBatch, match="a batch has at most 10,000"):
        welcome.enqueue_many([(1,)] * 10_001)


def test_a_handle_rejects_unknown_jobs_and_malformed_ids(app):
    with pytest.raises(NotFound):
        app.handle("01890000-0000-7000-8000-000000000001").status()
    with pytest.raises(Invalid, match="give a UUID"):
        app.handle("seven")


def test_a_database_without_the_schema_raises_schema_mismatch(empty_database_url):
    with Holdfast(empty_database_url) as app:

        @app.job
        def work():
            pass

        with pytest.raises(SchemaMismatch, match="holdfast migrate"):
            work.enqueue()


async def test_the_next_call_opens_the_engine_again_after_a_failure(empty_database_url):
    from tests.support.databases import migrate

    async with Holdfast(empty_database_url) as app:

        @app.job
        def work():
            pass

        answers = await asyncio.gather(*(work.aenqueue() for _ in range(3)), return_exceptions=True)
        assert {type(answer) for answer in answers} == {SchemaMismatch}
        await migrate(empty_database_url)
        assert not (await work.aenqueue()).replayed
