"""Steps and progress: recorded once by the holder of a job, for its next attempt."""

import asyncio

import pytest

from holdfast.engine.engine import Engine
from holdfast.engine.jobs import actions
from holdfast.engine.jobs import steps as stepping
from holdfast.errors import LeaseLost, OutcomeUnknown, StepOutcomeUnknown
from holdfast.model.job import HeldJob
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import Duration, days, seconds
from holdfast.store.port.store import Retention
from holdfast.worker.context.context import Context
from tests.support.builders import (
    a_transition,
    enter,
    error,
    fields,
    hold,
    lane_of,
    move,
    read,
    reap_once,
    report,
    running,
    share,
    take,
)
from tests.support.interleave import FaultyStore, after, before

RULE = Retention(history=days(7), dead=days(30))


def held(job):
    return HeldJob(job.id, job.fence, job.worker)


def done(key, result=b"1"):
    return Step(key, StepState.DONE, result)


def started(key):
    return Step(key, StepState.STARTED)


async def record(store, job, step):
    return await store.single(lambda tx: tx.record_step(held(job), step))


async def progress(store, job, text=b'{"fraction":0.5}'):
    return await store.single(lambda tx: tx.save_progress(held(job), text))


async def recorded(store, job):
    return {step.key: (step.state, step.result) for step in await store.single(lambda tx: tx.steps(job.id))}


async def next_attempt(store, clock, job):
    """Let the holder die and another worker claim the job."""
    await clock.expire()
    assert await reap_once(store) == 1
    (again,) = await take(store, await enter(store), share(lane_of(job)))
    assert (again.id, again.fence) == (job.id, job.fence + 1)
    return again


# The port


async def test_a_step_is_recorded_with_its_fence_and_the_database_time(manual_store, clock):
    job = await running(manual_store)
    assert await record(manual_store, job, done("load", b'{"a":1}'))
    await clock.advance(seconds(1))
    assert await record(manual_store, job, done("am Ende: ✓", b"null"))
    found = await manual_store.single(lambda tx: tx.steps(job.id))
    assert found == [
        Step("load", StepState.DONE, b'{"a":1}', job.fence, clock.now - seconds(1)),
        Step("am Ende: ✓", StepState.DONE, b"null", job.fence, clock.now),
    ]


async def test_step_keys_are_compared_byte_by_byte_within_a_job(store):
    one, other = await hold(store, await enter(store), n=2)
    keys = ["a", "A", "á", "a ", " a", "x" * 255, "✓" * 255]
    for key in keys:
        assert await record(store, one, done(key, key.encode()))
    assert await recorded(store, one) == {key: (StepState.DONE, key.encode()) for key in keys}
    assert await recorded(store, other) == {}


async def test_a_started_step_becomes_done_and_a_done_step_stays(store):
    job = await running(store)
    assert await record(store, job, started("pay"))
    assert await recorded(store, job) == {"pay": (StepState.STARTED, None)}
    assert await record(store, job, done("pay", b"1"))
    assert await record(store, job, done("pay", b"2"))
    assert await record(store, job, started("pay"))
    assert await recorded(store, job) == {"pay": (StepState.DONE, b"1")}


async def test_a_large_result_is_stored_unchanged(store):
    job = await running(store)
    large = bytes(range(256)) * 4_096
    assert await record(store, job, done("large", large))
    assert await recorded(store, job) == {"large": (StepState.DONE, large)}


async def test_a_holder_of_an_earlier_attempt_records_nothing(manual_store, clock):
    """S7, P29"""
    stale = await running(manual_store)
    assert await record(manual_store, stale, started("begun"))
    mine = await next_attempt(manual_store, clock, stale)
    assert not await record(manual_store, stale, done("begun", b"stale"))
    assert not await record(manual_store, stale, done("new", b"stale"))
    assert not await progress(manual_store, stale, b"stale")
    assert await recorded(manual_store, mine) == {"begun": (StepState.STARTED, None)}
    assert (await read(manual_store, mine)).progress is None
    assert await record(manual_store, mine, done("begun", b"mine"))
    assert await progress(manual_store, mine, b"mine")


@pytest.mark.parametrize("end", [Status.SUCCEEDED, Status.CANCELLED, Status.DEAD, Status.READY, Status.RETRYING])
async def test_a_worker_that_released_the_job_records_nothing(store, end):
    """S7, S17"""
    job = await running(store)
    await move(store, a_transition(job, end))
    assert not await record(store, job, done("late"))
    assert not await progress(store, job)
    assert await recorded(store, job) == {}


async def test_neither_another_worker_nor_another_fence_can_record_a_step(store):
    """S7"""
    job = await running(store)
    other = await enter(store)
    for claim in (HeldJob(job.id, job.fence, other), HeldJob(job.id, job.fence + 1, job.worker)):
        assert not await store.single(lambda tx, claim=claim: tx.record_step(claim, done("k")))
        assert not await store.single(lambda tx, claim=claim: tx.save_progress(claim, b"1"))
    assert await recorded(store, job) == {}


async def test_a_step_and_a_cancel_are_serialized(store, interleaving):
    """S17: a step is not recorded after a cancel."""
    job = await running(store)
    both = await interleaving.run(
        store,
        lambda tx: tx.apply([a_transition(job, Status.CANCELLED)]),
        lambda: record(store, job, done("k")),
        nothing,
    )
    assert both == ({job.id}, False)
    assert await recorded(store, job) == {}


async def test_a_cancel_waits_for_a_step_that_is_being_recorded(store, interleaving):
    """S17: the cancel takes effect after the step."""
    job = await running(store)
    both = await interleaving.run(
        store,
        lambda tx: tx.record_step(held(job), done("k")),
        lambda: actions.cancel(store, [job.id], reason="enough"),
        nothing,
    )
    assert both == (True, {job.id})
    assert await recorded(store, job) == {"k": (StepState.DONE, b"1")}
    assert not await record(store, job, done("later"))


async def nothing(tx, seen):
    return seen


async def test_steps_of_a_transaction_that_is_rolled_back_are_not_recorded(store):
    job = await running(store)

    async def work(tx):
        assert await tx.record_step(held(job), done("k"))
        assert await tx.save_progress(held(job), b"1")
        raise LeaseLost("changed its mind")

    with pytest.raises(LeaseLost):
        await store.run(work)
    assert await recorded(store, job) == {}
    assert (await read(store, job)).progress is None


async def test_the_latest_progress_follows_its_job_through_all_tables(manual_store, clock):
    job = await running(manual_store)
    assert await progress(manual_store, job, b"1")
    assert await progress(manual_store, job, b"1"), "the same again is no lost lease"
    assert await progress(manual_store, job, b"2")
    (listed,) = await manual_store.run(lambda tx: tx.held_by(job.worker, 10))
    assert listed.progress == b"2"
    job = await next_attempt(manual_store, clock, job)
    assert job.progress == b"2"
    await move(manual_store, a_transition(job, Status.DEAD))
    dead = await read(manual_store, job)
    assert fields(dead, "status", "progress") == (Status.DEAD, b"2")
    assert await actions.retry(manual_store, [job.id]) == {job.id}
    assert fields(await read(manual_store, job), "status", "progress") == (Status.READY, b"2")
    (job,) = await take(manual_store, await enter(manual_store), share(lane_of(job)))
    assert await progress(manual_store, job, b"3")
    await report(manual_store, job)
    assert fields(await read(manual_store, job), "status", "progress") == (Status.SUCCEEDED, b"3")


# Retention


async def prune(store, rule=RULE, limit=1_000):
    return await store.run(lambda tx: tx.prune(rule, limit))


@pytest.mark.parametrize(
    "end, kept", [(Status.SUCCEEDED, RULE.history), (Status.CANCELLED, RULE.history), (Status.DEAD, RULE.dead)]
)
async def test_steps_are_pruned_with_their_job_and_not_before(manual_store, clock, end, kept):
    """S25"""
    job = await running(manual_store)
    await record(manual_store, job, done("a"))
    await record(manual_store, job, started("b"))
    await move(manual_store, a_transition(job, end))
    await clock.advance(kept)
    assert await prune(manual_store) == 0
    assert set(await recorded(manual_store, job)) == {"a", "b"}
    await clock.advance(Duration(1))
    assert await prune(manual_store) == 3
    assert await recorded(manual_store, job) == {}


async def test_steps_of_an_unfinished_job_are_kept(manual_store, clock):
    """S25"""
    job = await running(manual_store)
    await record(manual_store, job, done("a"))
    await clock.advance(days(1_000))
    assert await prune(manual_store, Retention(Duration(0), Duration(0))) == 0
    assert set(await recorded(manual_store, job)) == {"a"}


async def test_pruning_steps_respects_its_limit_and_skips_none(manual_store, clock):
    """P25"""
    worker = await enter(manual_store, lease=days(100))
    staying, *going = await hold(manual_store, worker, n=6)
    for number in range(20):
        await record(manual_store, staying, done(f"s{number}"))
    for job in going:
        for number in range(5):
            await record(manual_store, job, done(f"s{number}"))
    await move(manual_store, *(a_transition(job, Status.SUCCEEDED) for job in going))
    await clock.advance(days(8))
    assert [await prune(manual_store, limit=10) for _ in range(4)] == [5 + 10, 10, 5, 0]
    assert len(await recorded(manual_store, staying)) == 20


# Handlers


async def test_a_step_runs_once_and_the_next_attempt_gets_its_result(manual_store, clock):
    """S11"""
    engine, calls = Engine(manual_store), []
    job = await running(manual_store)

    async def load(user):
        calls.append(user)
        return {"user": user, "mail": "a@example.org"}

    first = await Context(job, engine.attempts).step("load", load, 42)
    again = await next_attempt(manual_store, clock, job)
    assert (
        await Context(again, engine.attempts).step("load", load, 42) == first == {"user": 42, "mail": "a@example.org"}
    )
    assert calls == [42]


async def test_a_step_interrupted_before_its_record_runs_again_with_the_same_key(manual_store, clock):
    """S12, trap A: an effect without a record is not skipped."""
    engine, calls = Engine(manual_store), []
    job = await running(manual_store)

    async def charge(key):
        calls.append(key)
        if len(calls) == 1:
            raise ConnectionError("the worker died here, after the effect")
        return "paid"

    for attempt in range(2):
        context = Context(job, engine.attempts)
        try:
            paid = await context.step("charge", charge, context.idempotency_key("charge"))
        except ConnectionError:
            assert attempt == 0
            job = await next_attempt(manual_store, clock, job)
    assert paid == "paid"
    assert calls == [f"{job.id}:charge"] * 2


async def test_an_at_most_once_step_that_started_is_neither_repeated_nor_skipped(manual_store, clock):
    """Trap A: a guard written before the effect means unknown, not done."""
    engine, calls = Engine(manual_store), []
    job = await running(manual_store)

    def charge():
        calls.append("charged")
        raise ConnectionError("the worker died here, after the effect")

    with pytest.raises(ConnectionError):
        await Context(job, engine.attempts).step("charge", charge, at_most_once=True)
    for _ in range(2):
        job = await next_attempt(manual_store, clock, job)
        with pytest.raises(StepOutcomeUnknown, match="'charge'"):
            await Context(job, engine.attempts).step("charge", charge, at_most_once=True)
    assert calls == ["charged"]
    assert await Context(job, engine.attempts).step("charge", lambda: "found out by hand") == "found out by hand"


async def test_an_at_most_once_step_that_is_done_is_reused(manual_store, clock):
    engine = Engine(manual_store)
    job = await running(manual_store)
    assert await Context(job, engine.attempts).step("charge", lambda: 1, at_most_once=True) == 1
    job = await next_attempt(manual_store, clock, job)
    assert await Context(job, engine.attempts).step("charge", lambda: 2, at_most_once=True) == 1


async def test_a_handler_that_lost_its_job_learns_it_at_its_next_step(manual_store, clock):
    """S7"""
    engine = Engine(manual_store)
    job = await running(manual_store)
    stale = Context(job, engine.attempts)
    await stale.step("one", lambda: 1)
    await next_attempt(manual_store, clock, job)
    with pytest.raises(LeaseLost):
        await stale.step("two", lambda: 2)
    assert stale.cancelled
    for late in (stale.step("three", lambda: 3), stale.progress(0.5)):
        with pytest.raises(LeaseLost):
            await late
    assert set(await recorded(manual_store, job)) == {"one"}


async def test_a_replayed_job_reuses_the_steps_of_its_earlier_generation(manual_store):
    engine = Engine(manual_store)
    job = await running(manual_store, max_attempts=1)
    await Context(job, engine.attempts).step("load", lambda: "first")
    await report(manual_store, job, error())
    assert (await read(manual_store, job)).status is Status.DEAD
    assert await actions.retry(manual_store, [job.id]) == {job.id}
    (again,) = await take(manual_store, await enter(manual_store), share(lane_of(job)))
    assert fields(again, "generation", "attempts") == (1, 1)
    assert await Context(again, engine.attempts).step("load", lambda: "second") == "first"


async def test_a_step_whose_commit_response_is_lost_is_recorded_again(store):
    for fault in (after(OutcomeUnknown), before(OutcomeUnknown)):
        job = await running(store)
        assert await stepping.record(FaultyStore(store, fault), held(job), done("k", b"7"))
        assert await recorded(store, job) == {"k": (StepState.DONE, b"7")}


async def test_concurrent_steps_are_all_recorded(store):
    engine, job = Engine(store), await running(store)
    context = Context(job, engine.attempts)
    values = await asyncio.gather(*(context.step(f"s{number}", lambda number=number: number) for number in range(20)))
    assert values == list(range(20))
    assert len(await recorded(store, job)) == 20


async def test_the_last_progress_of_a_handler_is_saved_at_its_end(store):
    engine, job = Engine(store), await running(store)
    context = Context(job, engine.attempts)
    for part in range(10):
        await context.progress(part / 10, f"part {part}")
    assert (await read(store, job)).progress == b'{"fraction":0.0,"note":"part 0"}'
    await context.finish()
    assert (await read(store, job)).progress == b'{"fraction":0.9,"note":"part 9"}'
