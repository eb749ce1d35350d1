"""Leases: renewal, expiry and reaping of workers."""

import asyncio

import pytest

from holdfast.engine.jobs.reap import BATCH_SIZE, adopt_orphans
from holdfast.model.ids import new_worker_id
from holdfast.model.job import HeldJob, JobFilter
from holdfast.model.outcome import CancelledByHandler
from holdfast.model.state import Status
from holdfast.model.time import Duration, seconds
from holdfast.policy.lifecycle import attempt_log
from tests.support.builders import (
    LEASE,
    RETRY,
    a_job,
    a_worker,
    as_dict,
    enter,
    error,
    fields,
    hold,
    lane_of,
    put,
    read,
    read_all,
    reap_all,
    reap_once,
    report,
    running,
    some_jobs,
    take,
)


async def renew(store, worker, lease=LEASE):
    return await store.single(lambda tx: tx.renew(worker, lease))


async def workers(store):
    return [row.info.id for row in await store.single(lambda tx: tx.workers())]


async def adopt(store):
    return await adopt_orphans(store, default=RETRY, rng=lambda: 0.5)


async def test_a_registered_worker_is_listed_with_its_description(manual_store, clock):
    info = a_worker(name="Bücherwurm", queues="mail:10,default:5", slots=15, pid=2**22, version="1.2.3")
    await manual_store.run(lambda tx: tx.register(info, LEASE))
    (row,) = await manual_store.run(lambda tx: tx.workers())
    assert row.info == info
    assert (row.started_at, row.expires_at) == (clock.now, clock.now + LEASE)


async def test_workers_are_listed_oldest_first(manual_store, clock):
    entered = []
    for _ in range(5):
        entered.append(await enter(manual_store))
        await clock.advance(seconds(1))
    assert await workers(manual_store) == entered


async def test_a_renewal_prolongs_a_lease(manual_store, clock):
    worker = await enter(manual_store)
    for _ in range(5):
        await clock.advance(Duration(LEASE - 1))
        assert await renew(manual_store, worker)
    (row,) = await manual_store.run(lambda tx: tx.workers())
    assert row.expires_at == clock.now + LEASE
    await put(manual_store, a_job())
    assert len(await take(manual_store, worker)) == 1


async def test_a_renewal_in_the_same_instant_succeeds(manual_store):
    """P36: an unchanged row still counts as renewed."""
    worker = await enter(manual_store)
    assert [await renew(manual_store, worker) for _ in range(3)] == [True] * 3


async def test_a_renewal_never_revives_an_expired_lease(manual_store, clock):
    """S6"""
    worker = await enter(manual_store)
    await clock.expire()
    assert not await renew(manual_store, worker)
    await put(manual_store, a_job())
    assert await take(manual_store, worker) == []


async def test_an_unregistered_worker_cannot_renew_a_lease(store):
    assert not await renew(store, new_worker_id())


async def test_jobs_of_a_lost_worker_are_ready_again_immediately(manual_store, clock):
    """S6, S8: the attempt still counts and the error is logged."""
    job = await running(manual_store)
    await clock.expire()
    assert await reap_once(manual_store) == 1
    now = await read(manual_store, job)
    assert fields(now, "status", "attempts", "releases", "fence", "worker") == (Status.READY, 1, 0, 1, None)
    (entry,) = attempt_log(now)
    assert (entry.attempt, entry.outcome, entry.error.kind) == (1, "lease_expired", "LeaseExpired")
    (again,) = await take(manual_store, await enter(manual_store), lane_of(job))
    assert (again.attempts, again.fence) == (2, 2)


async def test_a_job_that_keeps_losing_its_worker_dies_after_its_last_attempt(manual_store, clock):
    """S8, P04: starts never exceed the allowed attempts, including crashes."""
    job = a_job(max_attempts=3)
    await put(manual_store, job)
    starts = 0
    for _ in range(5):
        starts += len(await take(manual_store, await enter(manual_store)))
        await clock.expire()
        await reap_once(manual_store)
    assert starts == 3
    dead = await read(manual_store, job)
    assert fields(dead, "status", "attempts", "fence") == (Status.DEAD, 3, 3)
    assert [entry.attempt for entry in attempt_log(dead)] == [1, 2, 3]
    assert dead.fingerprint


async def test_a_worker_that_renews_its_lease_is_never_reaped(manual_store, clock):
    """L4, P01: a job that runs for ten leases starts once."""
    worker = await enter(manual_store)
    held = await hold(manual_store, worker, n=3)
    for _ in range(30):
        await clock.advance(Duration(LEASE // 3))
        assert await renew(manual_store, worker)
        assert await reap_once(manual_store) == 0
    assert await read_all(manual_store, [job.id for job in held]) == held
    assert await report(manual_store, held) == {job.id for job in held}


async def test_only_workers_with_an_expired_lease_are_reaped(manual_store, clock):
    """L4"""
    gone, alive = await enter(manual_store), await enter(manual_store)
    lost, kept = await hold(manual_store, gone, n=3), await hold(manual_store, alive, n=3)
    await clock.advance(Duration(LEASE - 1))
    assert await renew(manual_store, alive)
    await clock.advance(Duration(1))
    assert await reap_all(manual_store) == 3
    assert {job.status for job in await read_all(manual_store, [job.id for job in lost])} == {Status.READY}
    assert await read_all(manual_store, [job.id for job in kept]) == kept
    assert await workers(manual_store) == [alive]


async def test_a_renewal_just_before_the_reaper_keeps_the_worker(manual_store, clock):
    worker = await enter(manual_store)
    (job,) = await hold(manual_store, worker)
    await clock.advance(Duration(LEASE - 1))
    assert await renew(manual_store, worker)
    await clock.advance(seconds(1))
    assert await reap_once(manual_store) == 0
    assert await read(manual_store, job) == job


async def test_a_reaped_worker_can_neither_claim_nor_renew_nor_settle(manual_store, clock):
    """S7"""
    worker = await enter(manual_store)
    (job,) = await hold(manual_store, worker)
    await clock.expire()
    await reap_once(manual_store)
    assert await workers(manual_store) == []
    assert not await renew(manual_store, worker)
    assert await take(manual_store, worker, lane_of(job)) == []
    assert await report(manual_store, job) == set()
    assert (await read(manual_store, job)).status is Status.READY


async def test_a_new_incarnation_with_an_old_name_inherits_no_jobs(manual_store, clock):
    """P15: the lease belongs to an incarnation, not to a name."""
    jobs = await hold(manual_store, await enter(manual_store, name="pod-0"), n=2)
    await clock.expire()
    again = await enter(manual_store, name="pod-0")
    assert await reap_all(manual_store) == 2
    assert {job.status for job in await read_all(manual_store, [job.id for job in jobs])} == {Status.READY}
    assert await workers(manual_store) == [again]


async def test_expired_workers_without_jobs_are_deleted(manual_store, clock):
    for _ in range(50):
        await enter(manual_store)
    await clock.expire()
    alive = await enter(manual_store)
    for _ in range(5):
        await reap_once(manual_store)
    assert await workers(manual_store) == [alive]


async def test_expired_idle_workers_do_not_hide_one_that_holds_jobs(manual_store, clock):
    """P25"""
    for _ in range(60):
        await enter(manual_store)
    await clock.advance(seconds(1))
    job = await running(manual_store)
    await clock.expire()
    for _ in range(5):
        await reap_once(manual_store)
    assert (await read(manual_store, job)).status is Status.READY


@pytest.mark.slow
async def test_more_jobs_than_one_round_reaps_are_all_recovered(manual_store, clock):
    """P25"""
    jobs = some_jobs(10_001, max_attempts=1)
    await put(manual_store, *jobs[:10_000])
    await put(manual_store, jobs[-1])
    worker = await enter(manual_store)
    assert len(await take(manual_store, worker)) == 10_001
    await clock.expire()
    rounds = []
    while moved := await reap_once(manual_store):
        rounds.append(moved)
        if len(rounds) <= 10:
            assert await workers(manual_store) == [worker]
    assert sum(rounds) == 10_001
    assert max(rounds) <= BATCH_SIZE
    assert await workers(manual_store) == []
    counts = await manual_store.read(lambda tx: tx.counts(JobFilter()))
    assert [(count.status, count.jobs) for count in counts] == [(Status.DEAD, 10_001)]


async def test_the_reaper_does_not_change_finished_jobs(manual_store, clock):
    """P07, P24"""
    worker = await enter(manual_store)
    jobs = await hold(manual_store, worker, n=4, max_attempts=1)
    await report(manual_store, jobs[0])
    await report(manual_store, jobs[1], error())
    await report(manual_store, jobs[2], CancelledByHandler("pointless"))
    finished = await read_all(manual_store, [job.id for job in jobs[:3]])
    assert [job.status for job in finished] == [Status.SUCCEEDED, Status.DEAD, Status.CANCELLED]
    await clock.expire()
    assert await reap_all(manual_store) == 1
    assert [as_dict(job) for job in await read_all(manual_store, [job.id for job in jobs[:3]])] == [
        as_dict(job) for job in finished
    ]


async def test_reapers_on_many_nodes_reap_each_job_once(manual_store, clock):
    """P16, P22"""
    jobs = []
    for _ in range(25):
        jobs += await hold(manual_store, await enter(manual_store), n=4)
    await clock.expire()
    moved = sum(await asyncio.gather(*(reap_all(manual_store) for _ in range(4))))
    moved += await reap_all(manual_store)
    assert moved == 100
    now = await read_all(manual_store, [job.id for job in jobs])
    assert {fields(job, "status", "attempts", "fence") for job in now} == {(Status.READY, 1, 1)}
    assert {len(attempt_log(job)) for job in now} == {1}


async def test_a_worker_departs_only_if_it_holds_no_jobs(store):
    worker = await enter(store)
    (job,) = await hold(store, worker)
    assert not await store.single(lambda tx: tx.depart(worker))
    assert await workers(store) == [worker]
    await report(store, job)
    assert await store.single(lambda tx: tx.depart(worker))
    assert await workers(store) == []
    assert not await store.single(lambda tx: tx.depart(worker))


async def test_forgetting_a_worker_checks_its_expiry_again(manual_store, clock):
    """A live worker stays, even if the clock was set back or the caller is wrong."""
    worker, gone = await enter(manual_store), await enter(manual_store, lease=seconds(1))
    await clock.advance(seconds(1))
    assert await manual_store.run(lambda tx: tx.delete_expired([worker, gone, new_worker_id()])) == 1
    assert await workers(manual_store) == [worker]


async def test_a_worker_that_holds_jobs_is_not_forgotten(manual_store, clock):
    """P15: a held job always has a registered worker."""
    worker = await enter(manual_store)
    await hold(manual_store, worker)
    await clock.expire()
    assert await manual_store.run(lambda tx: tx.delete_expired([worker])) == 0
    assert await workers(manual_store) == [worker]


@pytest.mark.databases("postgres", "mysql")
async def test_a_job_in_a_frozen_transaction_delays_the_recovery_of_no_other(manual_store, clock):
    """P15, S14: a node froze inside a handler's transaction, which locks its job; SQLite has one writer at a time."""
    frozen, dead = await enter(manual_store), await enter(manual_store)
    locked, beside = await hold(manual_store, frozen, 2)
    (other,) = await hold(manual_store, dead)
    async with manual_store.session(HeldJob(locked.id, locked.fence, frozen), "effect"):
        await clock.expire()
        async with asyncio.timeout(30):
            assert await reap_once(manual_store) == 2
            assert await reap_once(manual_store) == 0
        assert await workers(manual_store) == [frozen]
        for job in (beside, other):
            assert (await read(manual_store, job)).status is Status.READY
    assert await reap_once(manual_store) == 1
    assert await workers(manual_store) == []


async def test_a_worker_whose_lease_has_not_expired_is_not_locked(manual_store, clock):
    """The reaper tests the expiry again in the transaction that recovers the jobs."""
    worker = await enter(manual_store)
    assert not await manual_store.run(lambda tx: tx.lock_expired_worker(worker))
    await clock.expire()
    assert await manual_store.run(lambda tx: tx.lock_expired_worker(worker))


async def test_expired_workers_are_returned_earliest_expiry_first(manual_store, clock):
    entered = []
    for _ in range(4):
        entered.append(await enter(manual_store))
        await clock.advance(seconds(1))
    await clock.advance(Duration(LEASE - seconds(2)))
    assert await manual_store.run(lambda tx: tx.lock_expired(10)) == entered[:3]
    assert await manual_store.run(lambda tx: tx.lock_expired(2)) == entered[:2]


async def test_running_jobs_of_unregistered_workers_are_orphans(manual_store, console):
    """P15"""
    worker = await enter(manual_store)
    orphan, kept = await running(manual_store), (await hold(manual_store, worker))[0]
    assert await manual_store.run(lambda tx: tx.orphans(10)) == []
    await console.run(f"DELETE FROM holdfast_workers WHERE id = {orphan.worker}")
    assert await manual_store.run(lambda tx: tx.orphans(10)) == [orphan]
    assert await adopt(manual_store) == 1
    assert fields(await read(manual_store, orphan), "status", "attempts", "worker") == (Status.READY, 1, None)
    assert await read(manual_store, kept) == kept
    assert await adopt(manual_store) == 0


async def test_jobs_of_an_expired_worker_are_not_orphans(manual_store, clock):
    await running(manual_store)
    await clock.expire()
    assert await manual_store.run(lambda tx: tx.orphans(10)) == []


async def test_only_the_database_clock_decides_about_a_lease(manual_store, clock):
    """S24, P33: regardless of the node's clock, even if the database clock is set back."""
    worker = await enter(manual_store)
    (job,) = await hold(manual_store, worker)
    await clock.advance(Duration(-seconds(86_400)))
    assert await reap_once(manual_store) == 0
    assert await renew(manual_store, worker)
    await clock.advance(seconds(86_400))
    assert await reap_once(manual_store) == 1
    assert await report(manual_store, job) == set()
