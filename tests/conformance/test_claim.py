"""Claims: each job goes to one worker, within the limits of the claim."""

import asyncio
import itertools
import random
from collections import Counter

import pytest

from holdfast.model.ids import new_worker_id
from holdfast.model.job import HeldJob
from holdfast.model.lane import Lane
from holdfast.model.outcome import Interrupted
from holdfast.model.state import Status
from holdfast.model.time import seconds
from tests.support.builders import (
    LEASE,
    MAIL,
    a_job,
    a_transition,
    a_worker,
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
    share,
    some_jobs,
    take,
)
from tests.support.long import LONG


async def test_a_claim_gives_the_job_to_the_worker_and_counts_the_attempt(manual_store, clock):
    """S8: the attempt is counted at claim."""
    worker = await enter(manual_store)
    (job,) = some_jobs(1)
    await put(manual_store, job)
    (held,) = await take(manual_store, worker)
    assert fields(held, "id", "status", "worker", "attempts", "fence", "started_at") == (
        job.id, Status.RUNNING, worker, 1, 1, clock.now,
    )  # fmt: skip
    assert await read(manual_store, job) == held


async def test_every_claim_raises_the_fence(manual_store, clock):
    """S5"""
    worker = await enter(manual_store, lease=seconds(1_000))
    job = a_job(max_attempts=10)
    await put(manual_store, job)
    seen = []
    for outcome in (error(), Interrupted(), error(), error()):
        (held,) = await take(manual_store, worker)
        seen.append((held.fence, held.attempts))
        await report(manual_store, held, outcome)
        await clock.advance(seconds(10))
        await manual_store.run(lambda tx: tx.promote(10))
    assert seen == [(1, 1), (2, 2), (3, 2), (4, 3)]


async def test_a_job_is_claimed_once(store):
    """S6"""
    await put(store, *some_jobs(10))
    first, second = await enter(store), await enter(store)
    assert len(await take(store, first)) == 10
    assert await take(store, second) == []
    assert await take(store, first) == []


async def test_the_oldest_jobs_of_a_lane_are_claimed_first(store):
    jobs = some_jobs(10)
    await put(store, *jobs)
    worker = await enter(store)
    order = [held.id for _ in jobs for held in await take(store, worker, share(max_jobs=1))]
    assert order == [job.id for job in jobs]


async def test_a_released_job_goes_to_the_end_of_its_lane(store):
    jobs = some_jobs(3)
    await put(store, *jobs)
    worker = await enter(store)
    (held,) = await take(store, worker, share(max_jobs=1))
    await report(store, held, Interrupted())
    order = [held.id for _ in jobs for held in await take(store, worker, share(max_jobs=1))]
    assert order == [jobs[1].id, jobs[2].id, jobs[0].id]


async def test_a_claim_takes_jobs_only_from_its_lanes(store):
    lanes = [Lane(queue, tenant, priority) for queue in ("a", "b") for tenant in ("x", "y") for priority in (-5, 0, 7)]
    jobs = {lane: some_jobs(3, queue=lane.queue, tenant=lane.tenant, priority=lane.priority) for lane in lanes}
    await put(store, *itertools.chain(*jobs.values()))
    worker = await enter(store)
    for lane in lanes:
        assert {held.id for held in await take(store, worker, lane)} == {job.id for job in jobs[lane]}


async def test_one_claim_serves_many_lanes_each_up_to_its_quota(store):
    lanes = [Lane("mail", f"tenant-{number}", priority) for number in range(30) for priority in (0, 3)]
    await put(store, *(a_job(tenant=lane.tenant, priority=lane.priority) for lane in lanes for _ in range(5)))
    held = await take(store, await enter(store), *(share(lane, max_jobs=2) for lane in lanes))
    taken = [lane_of(job) for job in held]
    assert {lane: taken.count(lane) for lane in lanes} == dict.fromkeys(lanes, 2)


async def test_each_lane_of_a_claim_may_have_a_different_quota(store):
    quotas = {Lane("mail", f"tenant-{quota}", 0): quota for quota in range(6)}
    await put(store, *(a_job(tenant=lane.tenant) for lane in quotas for _ in range(4)))
    held = await take(store, await enter(store), *(share(lane, quota) for lane, quota in quotas.items()))
    taken = [lane_of(job) for job in held]
    assert {lane: taken.count(lane) for lane in quotas} == {lane: min(4, quota) for lane, quota in quotas.items()}


async def test_the_limit_ends_a_claim_at_the_lanes_named_first(store):
    lanes = [Lane("mail", f"tenant-{number}", 0) for number in (3, 1, 2)]
    await put(store, *(a_job(tenant=lane.tenant) for lane in lanes for _ in range(4)))
    held = await take(store, await enter(store), *(share(lane, max_jobs=3) for lane in lanes), limit=7)
    taken = [lane_of(job) for job in held]
    assert [taken.count(lane) for lane in lanes] == [3, 3, 1]


async def test_an_empty_lane_does_not_affect_the_others(store):
    await put(store, a_job())
    held = await take(store, await enter(store), Lane("mail", "unknown", 0), MAIL, Lane("nothing", "acme", 0))
    assert len(held) == 1


async def test_a_claim_takes_only_the_requested_types(store):
    jobs = {kind: a_job(type=kind) for kind in ("send", "Send", "resize", "report")}
    await put(store, *jobs.values())
    worker = await enter(store)
    held = await take(store, worker, types=["resize", "send", "unheard-of"])
    assert {job.id for job in held} == {jobs["resize"].id, jobs["send"].id}
    assert await take(store, worker, types=[]) == []
    assert {job.type for job in await take(store, worker)} == {"Send", "report"}


async def test_older_jobs_of_other_types_do_not_hide_the_requested_ones(store):
    """P25"""
    await put(store, *some_jobs(2_000, type="other"), a_job(type="wanted"))
    (held,) = await take(store, await enter(store), share(max_jobs=1), types=["wanted"])
    assert held.type == "wanted"


async def test_a_claim_takes_jobs_above_the_floor(store):
    jobs = some_jobs(10)
    await put(store, *jobs)
    worker = await enter(store)
    passed = max(job.seq for job in await take(store, worker, share(max_jobs=4)))
    held = await take(store, worker, share(max_jobs=3, floor=passed))
    assert {job.id for job in held} == {job.id for job in jobs[4:7]}
    assert min(job.seq for job in held) > passed


async def test_a_worker_that_is_not_registered_gets_nothing(store):
    await put(store, a_job())
    assert await take(store, new_worker_id()) == []


async def test_a_worker_whose_lease_expired_gets_nothing(manual_store, clock):
    """S6: no claim without a live lease."""
    job = a_job()
    await put(manual_store, job)
    worker = await enter(manual_store)
    await clock.expire(LEASE)
    assert await take(manual_store, worker) == []
    assert fields(await read(manual_store, job), "status", "attempts", "fence") == (Status.READY, 0, 0)


async def test_a_lease_is_valid_until_its_last_microsecond(manual_store, clock):
    await put(manual_store, a_job())
    worker = await enter(manual_store)
    await clock.advance(LEASE - 1)
    assert len(await take(manual_store, worker)) == 1


async def test_a_scheduled_job_is_not_claimed_before_it_is_promoted(manual_store, clock):
    """P02, P13"""
    worker = await enter(manual_store, lease=seconds(10_000))
    scheduled, failing = a_job(delay=seconds(100)), a_job(queue="other")
    await put(manual_store, scheduled, failing)
    (held,) = await take(manual_store, worker, lane_of(failing))
    await report(manual_store, held, error())
    lanes = [MAIL, lane_of(failing)]
    assert await manual_store.run(lambda tx: tx.promote(10)) == 0
    assert await take(manual_store, worker, *lanes) == []
    await clock.advance(seconds(1_000))
    assert await take(manual_store, worker, *lanes) == []
    assert await manual_store.run(lambda tx: tx.promote(10)) == 2
    assert {job.id for job in await take(manual_store, worker, *lanes)} == {scheduled.id, failing.id}


async def test_promotion_takes_the_earliest_jobs_up_to_the_limit(manual_store, clock):
    jobs = [a_job(delay=seconds(delay)) for delay in (30, 10, 20, 40)]
    await put(manual_store, *jobs)
    await clock.advance(seconds(30))
    assert await manual_store.run(lambda tx: tx.promote(2)) == 2
    ready = [(await read(manual_store, job)).status is Status.READY for job in jobs]
    assert ready == [False, True, True, False]
    assert await manual_store.run(lambda tx: tx.promote(2)) == 1
    assert await manual_store.run(lambda tx: tx.promote(2)) == 0


async def test_concurrent_promotions_promote_each_job_once(manual_store, clock):
    """P13"""
    await put(manual_store, *some_jobs(500, delay=seconds(1)))
    await clock.advance(seconds(1))

    async def promote_all():
        total = 0
        while promoted := await manual_store.single(lambda tx: tx.promote(50)):
            total += promoted
        return total

    totals = await asyncio.gather(*(promote_all() for _ in range(4)))
    rest = await promote_all()
    assert sum(totals) + rest == 500
    assert len(await take(manual_store, await enter(manual_store))) == 500


async def test_a_claim_that_is_rolled_back_changes_nothing(store):
    job = a_job()
    await put(store, job)
    worker = await enter(store)
    await roll_back(store, lambda tx: tx.claim(worker, [share()], 10, None))
    assert fields(await read(store, job), "status", "attempts", "fence", "worker") == (Status.READY, 0, 0, None)
    assert len(await take(store, worker)) == 1


async def test_a_cancelled_job_is_never_claimed(store):
    """S17"""
    job = a_job()
    await put(store, job)
    await move(store, a_transition(await read(store, job), Status.CANCELLED, reason="not wanted"))
    assert await take(store, await enter(store)) == []


async def test_eight_workers_claim_thousands_of_jobs_each_exactly_once(store):
    """S6, P34, P35, P42. Ten thousand with HOLDFAST_LONG_TESTS=1."""
    limit, lanes = 50, [Lane("mail", f"tenant-{number}", 0) for number in range(4)]
    jobs = [a_job(tenant=f"tenant-{number % 4}") for number in range(10_000 if LONG else 2_000)]
    await put(store, *jobs)
    claimed = []
    first_claims = asyncio.Barrier(8)

    async def claim(worker):
        held = await take(store, worker, *(share(lane, max_jobs=20) for lane in lanes), limit=limit)
        assert len(held) <= limit
        assert all([lane_of(job) for job in held].count(lane) <= 20 for lane in lanes)
        assert {job.worker for job in held} <= {worker}
        claimed.extend(job.id for job in held)
        return held

    async def work():
        worker = await enter(store)
        # Each lane has more jobs than the other workers can claim at once, so that no first claim is empty.
        assert await claim(worker)
        await first_claims.wait()
        while len(claimed) < len(jobs):
            await claim(worker)

    async with asyncio.timeout(100), asyncio.TaskGroup() as workers:
        for _ in range(8):
            workers.create_task(work())
    assert len(claimed) == len(jobs)
    assert set(claimed) == {job.id for job in jobs}


async def test_the_database_knows_the_jobs_that_a_worker_holds(store):
    mine, other = await enter(store), await enter(store)
    held, others = await hold(store, mine, n=5), await hold(store, other, n=2)
    listed = await store.run(lambda tx: tx.held_by(mine, 100))
    assert sorted(listed, key=lambda job: job.id) == held
    assert len(await store.run(lambda tx: tx.held_by(mine, 3))) == 3
    attempts = await store.read(lambda tx: tx.held_attempts(mine, 100))
    assert sorted(attempts) == sorted((job.id, job.fence) for job in listed)
    assert len(await store.read(lambda tx: tx.held_attempts(mine, 3))) == 3
    await report(store, held)
    assert await store.run(lambda tx: tx.held_by(mine, 100)) == []
    assert len(await store.run(lambda tx: tx.held_by(other, 100))) == len(others)


async def test_a_holder_learns_which_jobs_it_lost(manual_store):
    """S7, P41"""
    worker = await enter(manual_store)
    kept, settled, cancelled, handed_back, retaken = await hold(manual_store, worker, n=5)
    other = await enter(manual_store)
    await report(manual_store, settled)
    await move(manual_store, a_transition(cancelled, Status.CANCELLED))
    await report(manual_store, handed_back, Interrupted())
    await report(manual_store, retaken, Interrupted())
    (again,) = await take(
        manual_store, other, share(lane_of(retaken), max_jobs=1, floor=(await read(manual_store, handed_back)).seq)
    )
    assert again.id == retaken.id
    jobs = [kept, settled, cancelled, handed_back, retaken]
    held = [HeldJob(job.id, job.fence, worker) for job in jobs]
    lost = await manual_store.single(lambda tx: tx.lost(held))
    assert lost == {job.id for job in jobs[1:]}
    stale = [HeldJob(kept.id, kept.fence - 1, worker), HeldJob(retaken.id, again.fence, worker)]
    assert await manual_store.single(lambda tx: tx.lost(stale)) == {kept.id, retaken.id}
    assert await manual_store.single(lambda tx: tx.lost([HeldJob(again.id, again.fence, other)])) == set()


async def test_workers_with_the_same_name_are_different(store):
    """P15, P27"""
    first, second = a_worker(name="pod-0"), a_worker(name="pod-0")
    for worker in (first, second):
        await store.run(lambda tx, worker=worker: tx.register(worker, LEASE))
    held = await hold(store, first.id, n=3)
    assert await store.run(lambda tx: tx.held_by(second.id, 10)) == []
    assert {job.id for job in await store.run(lambda tx: tx.held_by(first.id, 10))} == {job.id for job in held}
    assert [row.info for row in await store.run(lambda tx: tx.workers())] in ([first, second], [second, first])


async def test_a_claim_of_everything_leaves_no_job_behind(store):
    jobs = some_jobs(100)
    await put(store, *jobs)
    worker = await enter(store)
    await take(store, worker)
    stored = await read_all(store, [job.id for job in jobs])
    assert {fields(job, "status", "worker", "attempts", "fence") for job in stored} == {(Status.RUNNING, worker, 1, 1)}


@pytest.mark.slow
async def test_concurrent_claims_in_a_few_lanes_respect_their_limits_and_all_get_jobs(store):
    """P34, P35: eight workers claim from the same lanes while others settle and release jobs there."""
    lanes = [Lane("mail", f"t{number}", 0) for number in range(30)]
    # 3,600 jobs: more than seven workers can settle (25 claims of 20 each), so that each worker finds some.
    await put(store, *(a_job(queue=lane.queue, tenant=lane.tenant) for lane in lanes for _ in range(120)))
    taken = Counter()

    async def claim(dice):
        worker = await enter(store)
        got = 0
        for _ in range(25):
            shares = [share(lane, max_jobs=dice.randint(1, 9)) for lane in dice.sample(lanes, 10)]
            limit = dice.randint(1, 40)
            held = await take(store, worker, *shares, limit=limit)
            got += len(held)
            assert len(held) <= limit
            allowed = {share.lane.tenant: share.max_jobs for share in shares}
            assert all(jobs <= allowed[tenant] for tenant, jobs in Counter(job.tenant for job in held).items())
            taken.update((job.id, job.fence) for job in held)
            await report(store, held[::2])
            await move(store, *(a_transition(job, Status.READY) for job in held[1::2]))
        return got

    got = await asyncio.gather(*(claim(random.Random(seed)) for seed in range(8)))
    assert min(got) > 0
    assert set(taken.values()) == {1}
