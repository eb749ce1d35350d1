"""Wrong clocks: those of the nodes change nothing, and a step of the database's clock overlaps no leases."""

import time

import pytest
import time_machine

from holdfast.engine.engine import Engine
from holdfast.engine.jobs.reap import shorten_leases
from holdfast.model.job import JobSpec
from holdfast.model.outcome import Succeeded
from holdfast.model.state import Status
from holdfast.model.time import Duration, seconds
from tests.support.builders import LEASE, a_worker, enter, hold, lane_of, read, reap_once, report, take

DAY_S = 86_400


@pytest.mark.parametrize("off", [-DAY_S, -5, 5, DAY_S])
async def test_a_wrong_clock_of_a_node_changes_nothing(store, off):
    """F25: a job is due, and a lease ends, by the database's clock."""
    right = await Engine.open(store)
    with time_machine.travel(time.time() + off, tick=True):
        wrong = await Engine.open(store)
        worker = a_worker()
        await wrong.workers.register(worker, seconds(600))
        later = await wrong.jobs.submit(JobSpec("send", {}, queue="clocks", delay=seconds(3_600)))
        now = await wrong.jobs.submit(JobSpec("send", {}, queue="clocks"))
        (held,) = await wrong.attempts.claims(worker.id, ["clocks"]).claim(10)
        assert held.id == now.id
        assert await reap_once(store) == 0
    assert await reap_once(store) == 0
    job = await right.jobs.get(later.id)
    assert (job.status, job.scheduled_at) == (Status.SCHEDULED, job.created_at + seconds(3_600))
    assert await right.attempts.settle(held, Succeeded())
    finished = await right.jobs.get(now.id)
    assert finished.finished_at is not None
    assert 0 <= finished.finished_at - finished.created_at < seconds(600)


async def test_a_backward_step_of_the_databases_clock_lengthens_no_lease(manual_store, clock):
    """F26: after a step of an hour, jobs of a dead worker are recovered within the length of its lease."""
    dead, alive = await enter(manual_store), await enter(manual_store)
    (job,) = await hold(manual_store, dead)
    await clock.advance(Duration(-seconds(3_600)))
    assert await shorten_leases(manual_store) == 2
    assert await shorten_leases(manual_store) == 0
    assert {row.expires_at for row in await manual_store.single(lambda tx: tx.workers())} == {clock.now + LEASE}
    await clock.advance(Duration(LEASE - 1))
    assert await manual_store.single(lambda tx: tx.renew(alive, LEASE))
    assert await reap_once(manual_store) == 0
    await clock.advance(Duration(1))
    assert await reap_once(manual_store) == 1
    assert [row.info.id for row in await manual_store.single(lambda tx: tx.workers())] == [alive]
    assert (await read(manual_store, job.id)).status is not Status.RUNNING


async def test_a_forward_step_of_the_databases_clock_expires_a_lease_early_and_fences_its_holder(manual_store, clock):
    """F26: the stale holder changes nothing, and the job has one holder at a time."""
    (job,) = await hold(manual_store, await enter(manual_store))
    await clock.advance(seconds(60))
    assert await reap_once(manual_store) == 1
    await clock.advance(seconds(60))  # past the backoff
    await manual_store.run(lambda tx: tx.promote(10))
    (again,) = await take(manual_store, await enter(manual_store), lane_of(job))
    assert again.fence > job.fence
    assert await report(manual_store, job) == set()
    assert await report(manual_store, again) == {job.id}


async def test_a_backward_step_of_the_databases_clock_overlaps_no_leases(manual_store, clock):
    """F26: a held job is not claimed again, and its holder may settle it."""
    (job,) = await hold(manual_store, await enter(manual_store))
    await clock.advance(Duration(-seconds(60)))
    assert await reap_once(manual_store) == 0
    assert await take(manual_store, await enter(manual_store), lane_of(job)) == []
    assert await report(manual_store, job) == {job.id}
    assert (await read(manual_store, job)).status is Status.SUCCEEDED
