"""Transitions: applied once, only to unchanged jobs, with all their fields."""

import asyncio

import msgspec
import pytest

from holdfast.engine.jobs import actions
from holdfast.model.ids import new_worker_id
from holdfast.model.job import JobFilter, Page
from holdfast.model.outcome import Snoozed
from holdfast.model.state import TERMINAL, TRANSITIONS, Status
from holdfast.model.time import seconds
from holdfast.policy import lifecycle
from holdfast.policy.lifecycle import attempt_log
from tests.support.builders import (
    a_job,
    a_transition,
    as_dict,
    enter,
    error,
    fields,
    hold,
    lane_of,
    move,
    put,
    read,
    read_all,
    report,
    roll_back,
    running,
    take,
)

LEGAL = [(was, to) for was, targets in TRANSITIONS.items() for to in sorted(targets) if to is not Status.RUNNING]
TABLES = {"holdfast_live": set(Status) - TERMINAL, "holdfast_dead": {Status.DEAD},
          "holdfast_history": {Status.SUCCEEDED, Status.CANCELLED}}  # fmt: skip


async def bring(store, console, status):
    """Return a job in this state."""
    job = a_job(max_attempts=3, delay=seconds(50) if status is Status.SCHEDULED else None)
    await put(store, job)
    if status in (Status.BLOCKED, Status.READY, Status.SCHEDULED):
        if status is Status.BLOCKED:  # no use case blocks a job yet: write the status directly
            await console.run(f"UPDATE holdfast_live SET status = {status.code}")
        return await read(store, job)
    (held,) = await take(store, await enter(store))
    if status is not Status.RUNNING:
        assert await move(store, a_transition(held, status, attempt_log=b"[]")) == {job.id}
    return await read(store, job)


async def where(console):
    """Return the number of jobs in each table that has any."""
    counts = {table: await console.value(f"SELECT count(*) FROM {table}") for table in TABLES}
    return {table: count for table, count in counts.items() if count}


@pytest.mark.parametrize("was, to", LEGAL, ids=[f"{was}-{to}" for was, to in LEGAL])
async def test_every_legal_transition_leaves_one_row_in_the_right_table(manual_store, console, was, to):
    """S4"""
    job = await bring(manual_store, console, was)
    assert job.status is was
    assert await move(manual_store, a_transition(job, to)) == {job.id}
    moved = await read(manual_store, job)
    assert moved.status is to
    assert moved.fence == job.fence
    assert await where(console) == {next(table for table, states in TABLES.items() if to in states): 1}
    assert (moved.finished_at is not None) is to.terminal
    found = await manual_store.read(lambda tx: tx.find(JobFilter(status=to), Page()))
    assert [stored.id for stored in found] == [job.id]


@pytest.mark.parametrize("was, to", LEGAL, ids=[f"{was}-{to}" for was, to in LEGAL])
async def test_a_transition_of_a_job_that_changed_since_it_was_read_is_refused(manual_store, console, was, to):
    """S4, S7"""
    job = await bring(manual_store, console, was)
    alike = [status for status in Status if status.terminal is was.terminal and status is not was]
    wrong = [a_transition(job, to, fence=job.fence + 1), a_transition(job, to, was=alike[0])]
    if was not in TERMINAL:
        wrong.append(a_transition(job, to, worker=new_worker_id()))
    if was is Status.RUNNING:
        wrong += [a_transition(job, to, worker=None), a_transition(job, to, fence=job.fence - 1)]
    for each in wrong:
        assert await move(manual_store, each) == set()
    assert as_dict(await read(manual_store, job)) == as_dict(job)


@pytest.mark.parametrize("was, to", LEGAL, ids=[f"{was}-{to}" for was, to in LEGAL])
async def test_a_transition_applied_twice_takes_effect_once(manual_store, console, was, to):
    """S4"""
    job = await bring(manual_store, console, was)
    once = a_transition(job, to)
    assert await move(manual_store, once) == {job.id}
    after = await read(manual_store, job)
    assert await move(manual_store, once) == set()
    assert as_dict(await read(manual_store, job)) == as_dict(after)


@pytest.mark.parametrize("to", sorted(TERMINAL))
async def test_a_finished_job_has_all_fields_of_its_transition(manual_store, clock, to):
    job = await running(manual_store)
    await clock.advance(seconds(3))
    told = {
        "attempt_log": '[{"e": "Zoë 🐙"}]'.encode(),
        "result": '{"n": "ü"}'.encode(),
        "reason": "it’s over 🐙",
        "fingerprint": "f" * 40,
    }
    await move(manual_store, a_transition(job, to, **told))
    done = await read(manual_store, job)
    assert {name: getattr(done, name) for name in told} == told
    assert (done.finished_at, done.worker, done.started_at) == (clock.now, job.worker, job.started_at)
    ended = {"status", "finished_at", *told}
    assert {k: v for k, v in as_dict(done).items() if k not in ended} == {
        k: v for k, v in as_dict(job).items() if k not in ended
    }


async def test_finishing_without_a_log_keeps_the_stored_log(manual_store, clock):
    worker = await enter(manual_store, lease=seconds(1_000))
    (job,) = await hold(manual_store, worker)
    await report(manual_store, job, error())
    log = (await read(manual_store, job)).attempt_log
    assert log
    await clock.advance(seconds(100))
    await manual_store.run(lambda tx: tx.promote(10))
    (again,) = await take(manual_store, worker, lane_of(job))
    assert again.attempt_log == log
    await report(manual_store, again)
    assert fields(await read(manual_store, job), "status", "attempt_log") == (Status.SUCCEEDED, log)


@pytest.mark.parametrize("to", [Status.RETRYING, Status.SCHEDULED, Status.READY])
async def test_requeueing_without_a_log_keeps_the_stored_log(manual_store, to):
    worker = await enter(manual_store)
    (job,) = await hold(manual_store, worker)
    await move(manual_store, a_transition(job, Status.READY, attempt_log=b"[1]"))
    (again,) = await take(manual_store, worker, lane_of(job))
    await move(manual_store, a_transition(again, to))
    assert (await read(manual_store, job)).attempt_log == b"[1]"


async def test_a_large_log_and_result_are_stored_completely(manual_store):
    job = await running(manual_store)
    log, result = msgspec.json.encode(["ß" * 200_000]), msgspec.json.encode("r" * 250_000)
    await move(manual_store, a_transition(job, Status.SUCCEEDED, attempt_log=log, result=result))
    assert fields(await read(manual_store, job), "attempt_log", "result") == (log, result)


@pytest.mark.parametrize("to", [Status.RETRYING, Status.SCHEDULED, Status.READY])
async def test_a_requeued_job_has_its_counts_and_due_time(manual_store, clock, to):
    job = await running(manual_store)
    await clock.advance(seconds(3))
    await move(manual_store, a_transition(job, to, attempts=7, releases=3, delay=seconds(42), attempt_log=b"[1]"))
    waits = await read(manual_store, job)
    assert fields(waits, "status", "attempts", "releases", "attempt_log", "worker") == (to, 7, 3, b"[1]", None)
    assert waits.scheduled_at == clock.now + seconds(42)
    assert waits.seq > job.seq
    unchanged = ("id", "payload", "priority", "max_attempts", "cost", "created_at", "generation", "fence")
    assert fields(waits, *unchanged) == fields(job, *unchanged)


async def test_a_stale_worker_cannot_settle_a_job_that_another_worker_holds(manual_store, clock):
    """S7: for every outcome."""
    stale = await running(manual_store)
    await clock.expire()
    await manual_store.run(lambda tx: tx.apply([a_transition(stale, Status.READY)]))
    (held,) = await take(manual_store, await enter(manual_store), lane_of(stale))
    for outcome in (None, error(), Snoozed(seconds(5))):
        assert await report(manual_store, stale, outcome) == set()
    assert await read(manual_store, stale) == held
    assert await report(manual_store, held) == {held.id}


async def test_a_worker_cannot_settle_with_the_fence_of_an_earlier_claim(manual_store):
    """S5, S7: same worker, same job, another claim."""
    worker = await enter(manual_store)
    (first,) = await hold(manual_store, worker)
    await move(manual_store, a_transition(first, Status.READY))
    (second,) = await take(manual_store, worker, lane_of(first))
    assert await report(manual_store, first) == set()
    assert await report(manual_store, second) == {second.id}


async def test_a_batch_applies_all_but_its_stale_transitions(manual_store):
    worker = await enter(manual_store)
    jobs = await hold(manual_store, worker, n=60)
    stale = [msgspec.structs.replace(job, fence=job.fence + 1) for job in jobs[::3]]
    fresh = [job for number, job in enumerate(jobs) if number % 3]
    ends = (Status.SUCCEEDED, Status.DEAD, Status.RETRYING, Status.CANCELLED, Status.SCHEDULED, Status.READY)
    chosen = {job.id: ends[number % 6] for number, job in enumerate(fresh)}
    moves = [
        *(a_transition(job, chosen[job.id]) for job in fresh),
        *(a_transition(job, Status.SUCCEEDED) for job in stale),
    ]
    moves.sort(key=lambda each: each.id)
    assert await move(manual_store, *moves) == set(chosen)
    now = {job.id: job.status for job in await read_all(manual_store, [job.id for job in jobs])}
    assert now == dict.fromkeys((job.id for job in jobs), Status.RUNNING) | chosen


@pytest.mark.slow
async def test_ten_thousand_jobs_are_settled_in_one_transaction(manual_store):
    jobs = [a_job() for _ in range(10_000)]
    await put(manual_store, *jobs)
    held = await take(manual_store, await enter(manual_store))
    assert await report(manual_store, held) == {job.id for job in jobs}
    assert await manual_store.read(lambda tx: tx.counts(JobFilter())) == []


async def test_one_of_two_concurrent_settles_of_a_job_succeeds(manual_store):
    """S1"""
    jobs = await hold(manual_store, await enter(manual_store), n=50)
    outcomes = await asyncio.gather(*(report(manual_store, job, end) for job in jobs for end in (None, error())))
    for job, one, other in zip(jobs, outcomes[::2], outcomes[1::2], strict=True):
        assert sorted([one, other], key=len) == [set(), {job.id}]
        expected = Status.SUCCEEDED if one else Status.RETRYING
        assert (await read(manual_store, job)).status is expected


async def test_a_cancelled_job_cannot_be_settled_by_the_worker_that_runs_it(manual_store):
    """S17"""
    job = await running(manual_store)
    assert await actions.cancel(manual_store, [job.id], reason="not wanted") == {job.id}
    assert await report(manual_store, job) == set()
    assert fields(await read(manual_store, job), "status", "reason", "result") == (Status.CANCELLED, "not wanted", None)


async def test_cancelling_a_finished_or_unknown_job_changes_nothing(manual_store):
    """P11"""
    job = await running(manual_store)
    await report(manual_store, job)
    done = await read(manual_store, job)
    assert await actions.cancel(manual_store, [job.id, a_job().id], reason="late") == set()
    assert as_dict(await read(manual_store, job)) == as_dict(done)


@pytest.mark.parametrize("end", [Status.DEAD, Status.CANCELLED])
async def test_a_replayed_job_starts_a_new_generation_and_keeps_its_history(manual_store, clock, end):
    """S4, S5, S20"""
    worker = await enter(manual_store, lease=seconds(1_000))
    (first,) = await hold(manual_store, worker, max_attempts=2, idempotency_key="k", tags=("a",), timeout=seconds(9))
    await report(manual_store, first, error())
    await clock.advance(seconds(10))
    await manual_store.run(lambda tx: tx.promote(1))
    (second,) = await take(manual_store, worker, lane_of(first))
    if end is Status.DEAD:
        await report(manual_store, second, error())
    else:
        await actions.cancel(manual_store, [second.id], reason="not now")
    ended = await read(manual_store, first)
    assert ended.status is end
    assert await actions.retry(manual_store, [first.id]) == {first.id}
    now = await read(manual_store, first)
    assert fields(now, "status", "attempts", "releases", "generation", "worker", "fence") == (
        Status.READY, 0, 0, 1, None, 2,
    )  # fmt: skip
    assert fields(now, "finished_at", "result", "reason", "fingerprint") == (None,) * 4
    assert now.attempt_log == ended.attempt_log
    kept = ("created_at", "idempotency_key", "tags", "timeout", "payload", "max_attempts", "cost", "priority")
    assert fields(now, *kept) == fields(first, *kept)
    (third,) = await take(manual_store, worker, lane_of(first))
    assert (third.fence, third.attempts, third.generation) == (3, 1, 1)
    await report(manual_store, third, error())
    log = attempt_log(await read(manual_store, first))
    assert [(entry.generation, entry.attempt) for entry in log][-1] == (1, 1)
    assert log[0].generation == 0


async def test_a_holder_from_before_the_replay_cannot_change_the_job(manual_store):
    """S7"""
    job = await running(manual_store, max_attempts=1)
    await report(manual_store, job, error())
    await actions.retry(manual_store, [job.id])
    assert await report(manual_store, job) == set()
    (held,) = await take(manual_store, await enter(manual_store), lane_of(job))
    assert await report(manual_store, job) == set()
    assert await report(manual_store, held) == {job.id}


async def test_concurrent_replays_start_one_new_generation(manual_store):
    """S20"""
    jobs = await hold(manual_store, await enter(manual_store), n=30, max_attempts=1)
    await report(manual_store, jobs, error())
    ids = [job.id for job in jobs]
    moved = await asyncio.gather(*(actions.retry(manual_store, ids) for _ in range(4)))
    assert sum(len(changed) for changed in moved) == len(ids)
    assert {fields(job, "status", "generation") for job in await read_all(manual_store, ids)} == {(Status.READY, 1)}


async def test_a_succeeded_job_cannot_be_replayed(manual_store):
    """S4: success is final."""
    job = await running(manual_store)
    await report(manual_store, job)
    done = await read(manual_store, job)
    assert lifecycle.retry(done) is None
    assert await actions.retry(manual_store, [job.id]) == set()


async def test_transitions_that_are_rolled_back_change_nothing(manual_store):
    jobs = await hold(manual_store, await enter(manual_store), n=4)
    ends = (Status.SUCCEEDED, Status.DEAD, Status.RETRYING, Status.READY)
    await roll_back(
        manual_store, lambda tx: tx.apply([a_transition(job, end) for job, end in zip(jobs, ends, strict=True)])
    )
    assert await read_all(manual_store, [job.id for job in jobs]) == jobs


async def watched(store, look):
    """Finish and replay ten jobs while `look` runs repeatedly; it must see each job exactly once."""
    worker = await enter(store, lease=seconds(600))
    jobs = await hold(store, worker, n=10, max_attempts=1_000)
    ids = [job.id for job in jobs]
    looks, over = 0, asyncio.Event()

    async def keep_looking():
        nonlocal looks
        while not over.is_set():
            assert sorted(job.id for job in await look(ids)) == ids
            looks += 1

    async def keep_moving():
        held = jobs
        try:
            for _ in range(15):
                await asyncio.gather(
                    move(store, *(a_transition(job, Status.DEAD) for job in held[:3])),
                    move(store, *(a_transition(job, Status.CANCELLED) for job in held[3:6])),
                    move(store, *(a_transition(job, Status.RETRYING) for job in held[6:])),
                )
                await actions.retry(store, ids)
                held = await take(store, worker, lane_of(jobs[0]))
        finally:
            over.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(keep_looking())
        group.create_task(keep_moving())
    assert looks


async def test_a_reader_sees_a_job_exactly_once_while_it_changes_tables(store):
    """P38: a requeued job stays in its table, and a finished job changes tables atomically."""
    await watched(store, lambda ids: store.single(lambda tx: tx.get(ids)))


async def test_a_listing_shows_a_job_once_while_it_changes_tables(store):
    """P38"""
    await watched(store, lambda _: store.read(lambda tx: tx.find(JobFilter(), Page(100))))


async def test_a_count_includes_a_job_once_while_it_changes_tables(store):
    """S22"""
    worker = await enter(store, lease=seconds(600))
    held = await hold(store, worker, n=10)
    ids = [job.id for job in held]
    over = asyncio.Event()

    async def keep_counting():
        while not over.is_set():
            counts = await store.read(lambda tx: tx.counts(JobFilter()))
            assert sum(count.jobs for count in counts) == len(ids)

    async def keep_moving():
        moving = held
        try:
            for _ in range(15):
                await move(store, *(a_transition(job, Status.DEAD) for job in moving))
                await actions.retry(store, ids)
                moving = await take(store, worker, lane_of(moving[0]))
        finally:
            over.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(keep_counting())
        group.create_task(keep_moving())
