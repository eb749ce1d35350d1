"""Races: in any order of two transactions, a job has one outcome.

Where transactions can overlap, one is parked between its read and its write while the other runs; where they
cannot, the same parts run in sequence.
"""

import asyncio
import random

import pytest

from holdfast.engine.jobs import actions
from holdfast.model.job import JobFilter
from holdfast.model.outcome import Interrupted
from holdfast.model.state import Status
from holdfast.model.time import days, seconds
from holdfast.policy import lifecycle
from holdfast.policy.lifecycle import attempt_log
from tests.support.builders import (
    LEASE,
    MAIL,
    RETRY,
    a_job,
    a_transition,
    enter,
    error,
    fields,
    hold,
    lane_of,
    move,
    put,
    read,
    read_all,
    reap_all,
    reap_once,
    report,
    running,
    share,
    some_jobs,
    take,
)


async def nothing(tx, seen):
    return seen


def one_of(both, job):
    """Check that exactly one side changed the job; return which."""
    sides = [both.parked == {job.id}, both.meanwhile == {job.id}]
    assert sorted(sides) == [False, True], both
    return "parked" if sides[0] else "meanwhile"


async def test_transactions_overlap_except_where_the_database_runs_one_at_a_time(store, console, interleaving):
    """The tests below rely on this difference between databases."""
    assert interleaving.possible is (console.dialect != "sqlite")
    order = []

    async def first(tx):
        order.append("read")
        return await tx.now()

    async def meanwhile():
        await put(store, a_job())
        order.append("meanwhile")

    async def then(tx, seen):
        order.append("write")
        assert (await tx.now()) >= seen

    await interleaving.run(store, first, meanwhile, then)
    assert order == ["read", "meanwhile", "write"]


async def test_a_settle_and_a_concurrent_reap_never_both_succeed(manual_store, clock, interleaving):
    """P22, P24: the reaper is parked between its read and its write."""
    job = await running(manual_store)
    await clock.expire()

    async def look(tx):
        (worker,) = await tx.lock_expired(10)
        return await tx.held_by(worker, 10)

    async def bury(tx, lost):
        done = await tx.apply([lifecycle.expire_lease(held, now=clock.now, default=RETRY, rand=0.5) for held in lost])
        await tx.delete_expired([job.worker])
        return done

    both = await interleaving.run(manual_store, look, lambda: report(manual_store, job), bury)
    winner = one_of(both, job)
    now = await read(manual_store, job)
    assert now.status is {"parked": Status.READY, "meanwhile": Status.SUCCEEDED}[winner]
    assert await manual_store.run(lambda tx: tx.orphans(10)) == []


async def test_a_decision_on_a_stale_read_changes_nothing(manual_store, clock, interleaving):
    """P24: a completed job never becomes ready again."""
    job = await running(manual_store)
    await clock.expire()

    async def bury(tx, seen):
        return await tx.apply([lifecycle.expire_lease(held, now=clock.now, default=RETRY, rand=0.5) for held in seen])

    both = await interleaving.run(manual_store, lambda tx: tx.get([job.id]), lambda: report(manual_store, job), bury)
    assert both == (set(), {job.id})
    assert (await read(manual_store, job)).status is Status.SUCCEEDED


async def test_a_cancel_that_a_claim_overtakes_is_decided_again(manual_store, interleaving):
    """S17"""
    job = a_job()
    await put(manual_store, job)
    worker = await enter(manual_store)

    async def cancel(tx, seen):
        return await tx.apply([lifecycle.cancel(held, "not wanted") for held in seen])

    both = await interleaving.run(manual_store, lambda tx: tx.get([job.id]), lambda: take(manual_store, worker), cancel)
    assert both.parked == set()
    (held,) = both.meanwhile
    assert await actions.cancel(manual_store, [job.id], reason="not wanted") == {job.id}
    assert await report(manual_store, held) == set()


async def test_an_early_retry_and_a_promotion_make_the_job_ready_once(manual_store, clock, interleaving):
    """P13"""
    job = a_job(delay=seconds(5))
    await put(manual_store, job)
    await clock.advance(seconds(5))

    async def hurry(tx, seen):
        return await tx.apply([lifecycle.retry(held) for held in seen])

    both = await interleaving.run(
        manual_store, lambda tx: tx.get([job.id]), lambda: manual_store.run(lambda tx: tx.promote(10)), hurry
    )
    assert both == (set(), 1)
    assert len(await take(manual_store, await enter(manual_store))) == 1


async def test_two_replays_of_a_dead_job_start_one_generation(manual_store, interleaving):
    """S20"""
    job = await running(manual_store, max_attempts=1)
    await report(manual_store, job, error())

    async def replay(tx, seen):
        return await tx.apply([lifecycle.retry(held) for held in seen])

    both = await interleaving.run(
        manual_store, lambda tx: tx.get([job.id]), lambda: actions.retry(manual_store, [job.id]), replay
    )
    assert both == (set(), {job.id})
    assert fields(await read(manual_store, job), "status", "generation") == (Status.READY, 1)


async def test_a_worker_can_neither_claim_nor_renew_while_it_is_reaped(manual_store, clock, interleaving):
    """S6"""
    job = await running(manual_store)
    await put(manual_store, a_job())
    await clock.expire()

    async def bury(tx, workers):
        lost = await tx.held_by(workers[0], 10)
        await tx.apply([lifecycle.expire_lease(held, now=clock.now, default=RETRY, rand=0.5) for held in lost])
        return await tx.delete_expired(workers)

    async def struggle():
        claimed = await take(manual_store, job.worker)
        return claimed, await manual_store.single(lambda tx: tx.renew(job.worker, LEASE))

    both = await interleaving.run(manual_store, lambda tx: tx.lock_expired(10), struggle, bury)
    assert both.meanwhile == ([], False)
    assert (await read(manual_store, job)).status is Status.READY
    assert await manual_store.run(lambda tx: tx.workers()) == []


async def test_jobs_claimed_while_the_lease_expires_are_recovered(manual_store, clock, interleaving):
    """S6, P15: the reaper sees the claim or precedes it; it never deletes the worker in between."""
    job = a_job()
    await put(manual_store, job)
    worker = await enter(manual_store)

    async def run_out():
        await clock.expire()
        return await reap_once(manual_store)

    both = await interleaving.run(manual_store, lambda tx: tx.claim(worker, [share()], 1, None), run_out, nothing)
    assert [held.id for held in both.parked] == [job.id]
    assert await manual_store.run(lambda tx: tx.orphans(10)) == []
    assert both.meanwhile + await reap_all(manual_store) == 1
    assert fields(await read(manual_store, job), "status", "attempts", "fence") == (Status.READY, 1, 1)


async def test_a_renewal_in_progress_keeps_the_worker_from_being_reaped(manual_store, clock, interleaving):
    """L4"""
    worker = await enter(manual_store)
    (job,) = await hold(manual_store, worker)
    await clock.advance(LEASE - 1)

    async def just_too_late():
        await clock.advance(seconds(1))
        return await reap_once(manual_store)

    both = await interleaving.run(manual_store, lambda tx: tx.renew(worker, LEASE), just_too_late, nothing)
    assert both == (True, 0)
    assert await read(manual_store, job) == job
    assert await reap_once(manual_store) == 0


async def test_a_job_committed_late_is_reported_as_the_first_of_its_lane(store, interleaving):
    """P37: even if a later job was claimed before, so that a worker without a wake-up finds it."""
    late, prompt = a_job(), a_job(type="prompt")
    worker = await enter(store)

    async def look():
        return await store.single(lambda tx: tx.lanes(["mail"], 10))

    async def meanwhile():
        await put(store, prompt)
        (taken,) = await take(store, worker, types=["prompt"])
        return taken, await look()

    async def insert(tx):
        await tx.insert([late], key_retention=days(1))

    both = await interleaving.run(store, insert, meanwhile, nothing)
    taken, seen = both.meanwhile
    ((lane, first),) = found = await look()
    assert seen == ([] if interleaving.possible else found)
    assert lane == lane_of(late)
    assert first < taken.seq
    assert [job.id for job in await take(store, worker, share(lane, floor=first - 1))] == [late.id]


async def test_a_worker_cannot_depart_during_its_own_claim(manual_store, interleaving):
    """P15: a held job always has a registered worker."""
    job = a_job()
    await put(manual_store, job)
    worker = await enter(manual_store)
    both = await interleaving.run(
        manual_store,
        lambda tx: tx.claim(worker, [share()], 1, None),
        lambda: manual_store.single(lambda tx: tx.depart(worker)),
        nothing,
    )
    assert [held.id for held in both.parked] == [job.id]
    assert both.meanwhile is False
    assert await manual_store.run(lambda tx: tx.orphans(10)) == []


async def test_two_reapers_reap_the_jobs_of_a_worker_once(manual_store, clock, interleaving):
    """P16, P22"""
    job = await running(manual_store)
    await clock.expire()

    async def bury(tx, workers):
        lost = await tx.held_by(workers[0], 10)
        moved = await tx.apply([lifecycle.expire_lease(held, now=clock.now, default=RETRY, rand=0.5) for held in lost])
        await tx.delete_expired(workers)
        return len(moved)

    both = await interleaving.run(manual_store, lambda tx: tx.lock_expired(10), lambda: reap_once(manual_store), bury)
    assert sorted(both) == [0, 1]
    assert len(attempt_log(await read(manual_store, job))) == 1
    assert await manual_store.run(lambda tx: tx.workers()) == []


async def test_a_submission_that_waits_for_a_key_gets_the_job_that_took_it(store, interleaving):
    """P28"""
    mine, other = a_job(idempotency_key="k"), a_job(idempotency_key="k")
    both = await interleaving.run(
        store, lambda tx: tx.insert([mine], key_retention=days(1)), lambda: put(store, other), nothing
    )
    (answer,) = both.meanwhile
    assert (answer.id, answer.repeats) == (mine.id, "idempotency_key")
    assert [job.id for job in await read_all(store, [mine.id, other.id])] == [mine.id]


async def test_a_submission_that_waits_for_a_key_takes_it_after_a_rollback(store, interleaving):
    """P28: the transaction that was taking the key rolled back."""
    mine, other = a_job(idempotency_key="k"), a_job(idempotency_key="k")
    (answer,) = await interleaving.undo(
        store, lambda tx: tx.insert([mine], key_retention=days(1)), lambda: put(store, other)
    )
    assert (answer.id, answer.repeats) == (other.id, None)
    assert [job.id for job in await read_all(store, [mine.id, other.id])] == [other.id]


async def test_a_deadlock_is_retried_without_an_error(manual_store, interleaving):
    """F22"""
    one, two = await hold(manual_store, await enter(manual_store), n=2)

    async def crosswise():
        async def work(tx):
            return await tx.apply([a_transition(two, Status.READY)]) | await tx.apply([a_transition(one, Status.READY)])

        return await manual_store.run(work)

    async def then(tx, moved):
        return moved | await tx.apply([a_transition(two, Status.RETRYING)])

    both = await interleaving.run(
        manual_store, lambda tx: tx.apply([a_transition(one, Status.RETRYING)]), crosswise, then
    )
    assert both.parked | both.meanwhile == {one.id, two.id}
    assert not both.parked & both.meanwhile
    assert len(await read_all(manual_store, [one.id, two.id])) == 2


async def test_batches_in_opposite_orders_are_settled_without_an_error(manual_store):
    """F22"""
    jobs = await hold(manual_store, await enter(manual_store), n=100)
    orders = [jobs, jobs[::-1], random.Random(1).sample(jobs, 100), random.Random(2).sample(jobs, 100)]
    done = await asyncio.gather(*(report(manual_store, order) for order in orders))
    assert sum(len(applied) for applied in done) == 100
    assert set().union(*done) == {job.id for job in jobs}


@pytest.mark.slow
async def test_reapers_and_settles_race_ten_thousand_times(manual_store, clock):
    """P22, S1: each job is either settled or requeued."""
    settled_in_all = 0
    for _ in range(50):
        jobs = some_jobs(200, max_attempts=2)
        await put(manual_store, *jobs)
        held = await take(manual_store, await enter(manual_store), MAIL)
        assert len(held) == 200
        await clock.expire()
        *settled, reaped = await asyncio.gather(
            *(report(manual_store, held[start::4]) for start in range(3)), reap_all(manual_store)
        )
        done = set().union(*settled)
        assert reaped + await reap_all(manual_store) == len(held) - len(done)
        assert await report(manual_store, held) == set()
        now = await read_all(manual_store, [job.id for job in held])
        assert {job.id for job in now if job.status is Status.SUCCEEDED} == done
        rest = [job for job in now if job.status is not Status.SUCCEEDED]
        assert {fields(job, "status", "worker") for job in rest} <= {
            (Status.READY, None),
            (Status.DEAD, held[0].worker),
        }
        assert all((job.status is Status.DEAD) is (job.attempts == 2) for job in rest)
        await actions.cancel(manual_store, [job.id for job in rest], reason="next round")
        settled_in_all += len(done)
    assert 0 < settled_in_all < 10_000


async def test_cancels_race_with_claims_and_settles(manual_store):
    """S17, S1: every job is cancelled or succeeded, as its caller was told."""
    jobs = some_jobs(300)
    await put(manual_store, *jobs)
    worker = await enter(manual_store)
    succeeded = set()

    async def work():
        while held := await take(manual_store, worker, share(max_jobs=20)):
            succeeded.update(await report(manual_store, held[::2]))
            await report(manual_store, held[1::2], Interrupted())

    ids = [job.id for job in jobs]
    cancels = await asyncio.gather(
        *(actions.cancel(manual_store, ids[start::10], reason="enough") for start in range(10)), work()
    )
    cancelled = set().union(*cancels[:-1])
    assert cancelled | succeeded == set(ids)
    assert not cancelled & succeeded
    now = {job.id: job.status for job in await read_all(manual_store, ids)}
    assert now == dict.fromkeys(cancelled, Status.CANCELLED) | dict.fromkeys(succeeded, Status.SUCCEEDED)
    assert await manual_store.read(lambda tx: tx.counts(JobFilter())) == []


@pytest.mark.slow
async def test_concurrent_workers_reapers_and_operators_lose_no_job(manual_store, clock):
    """S1, S8: after many concurrent actions, every job has exactly one final state."""
    jobs = some_jobs(400, max_attempts=4)
    await put(manual_store, *jobs)
    ids = [job.id for job in jobs]
    starts = dict.fromkeys(ids, 0)
    over, moved = asyncio.Event(), asyncio.Event()

    async def work(dice):
        while not over.is_set():
            worker = await enter(manual_store)
            for _ in range(3):
                held = await take(manual_store, worker, share(max_jobs=25))
                if not held:
                    await moved.wait()
                    break
                for job in held:
                    starts[job.id] += 1
                some = [job for job in held if dice.random() < 0.8]  # the reaper handles the remaining jobs
                await report(manual_store, some[::2])
                await report(manual_store, some[1::2], error())

    async def run_maintenance():
        while not over.is_set():
            await clock.advance(seconds(20))
            await reap_all(manual_store)
            await manual_store.single(lambda tx: tx.promote(1_000))
            counts = await manual_store.read(lambda tx: tx.counts(JobFilter()))
            moved.set()  # wakes workers that found nothing
            if any(count.jobs for count in counts if count.status is not Status.DEAD):
                moved.clear()
            else:
                over.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for seed in range(4):
            group.create_task(work(random.Random(seed)))
        group.create_task(run_maintenance())
    now = await read_all(manual_store, ids)
    assert {job.id for job in now} == set(ids)
    assert {job.status for job in now} <= {Status.SUCCEEDED, Status.DEAD}
    assert all(1 <= starts[job.id] <= 4 for job in now)
    assert all(job.fence == job.attempts == starts[job.id] for job in now)
    assert all(job.attempts == 4 for job in now if job.status is Status.DEAD)


async def test_a_locked_job_does_not_block_claims_of_other_jobs(store, interleaving):
    """P34: other claims skip the locked job."""
    jobs = some_jobs(10)
    await put(store, *jobs)
    one, other = await enter(store), await enter(store)
    both = await interleaving.run(
        store,
        lambda tx: tx.claim(one, [share(max_jobs=4)], 10, None),
        lambda: take(store, other, lane_of(jobs[0])),
        nothing,
    )
    assert {job.id for job in both.parked} == {job.id for job in jobs[:4]}
    assert {job.id for job in both.meanwhile} == {job.id for job in jobs[4:]}


async def test_a_transition_and_a_claim_of_a_job_never_both_succeed(manual_store, interleaving):
    """S4"""
    job = a_job()
    await put(manual_store, job)
    ready = await read(manual_store, job)
    worker = await enter(manual_store)
    both = await interleaving.run(
        manual_store,
        lambda tx: tx.apply([a_transition(ready, Status.CANCELLED)]),
        lambda: take(manual_store, worker),
        nothing,
    )
    assert both.parked == {job.id}
    assert both.meanwhile == []
    assert (await read(manual_store, job)).status is Status.CANCELLED
    assert await move(manual_store, a_transition(ready, Status.CANCELLED)) == set()
