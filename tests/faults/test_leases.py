"""Nodes that die or freeze while they hold jobs, and the nodes that take over."""

import asyncio
from signal import SIGCONT, SIGKILL

import pytest

from tests.support.eventually import eventually
from tests.support.fault_env import KINDS

LEASE = 2.0


@pytest.mark.by_http_too("sqlite", "postgres")
async def test_jobs_of_a_killed_node_run_on_another(scene):
    """F01, S1, S8: all jobs it held, started or not; each starts once more and spends an attempt."""
    first = scene.node(lease=LEASE, queues="default:3")
    for kind in KINDS:
        await scene.submit(kind, kind, sleep=600, held=True)
    for n in range(5):
        await scene.submit(f"behind-{n}")
    for kind in KINDS:
        await scene.starts(kind)
    first.signal_all(SIGKILL)
    scene.node(lease=LEASE)
    for kind in KINDS:
        await scene.starts(kind, times=2)
        scene.let_go(kind)
    await scene.becomes("succeeded")
    await scene.workers(1)
    for kind in KINDS:
        job = await scene.job(kind)
        assert (job.attempts, job.releases, scene.ledger.count("start", kind)) == (2, 0, 2)
        assert scene.ledger.count("end", kind) == 1
        assert [each.outcome for each in await scene.attempts(kind)] == ["lease_expired"]
    assert all(times == 1 for key, times in scene.ledger.per_key("start").items() if key.startswith("behind"))


async def test_a_node_frozen_beyond_its_lease_changes_no_job_when_it_resumes(scene):
    """F03, S6, S7: its job runs again elsewhere; the zombie continues for a moment but cannot report."""
    zombie = scene.node(lease=LEASE)
    await scene.submit("job", "thread", sleep=600, held=True)
    await scene.starts("job")
    (worker,) = await scene.workers(1)
    await scene.freeze(zombie)
    scene.node(lease=LEASE)
    await scene.starts("job", times=2)
    scene.let_go("job")
    (settled,) = await scene.becomes("succeeded", "job")
    await asyncio.sleep(LEASE)  # frozen for three leases in total: the length of the fault
    zombie.signal_all(SIGCONT)
    await scene.gone(worker.info.pid)
    await scene.workers(2)
    assert await scene.job("job") == settled
    assert (settled.attempts, settled.fence) == (2, 2)
    assert settled.worker != worker.info.id
    assert scene.ledger.count("start", "job") == 2
    await scene.submit("after")
    await scene.becomes("succeeded", "after")


async def test_a_node_frozen_beyond_its_lease_records_no_step_when_it_resumes(scene):
    """F03, P29, S7: bull#308, bull#1416; its handler reaches its next step while another attempt runs the job."""

    async def steps_of(attempt):
        steps = {step.key for step in await scene.engine.jobs.steps(job)}
        return {key for key in steps if key.startswith(f"{attempt}-")}

    zombie = scene.node(lease=LEASE)
    job = await scene.submit("job", "writing")
    await eventually(lambda: steps_of(1))
    (worker,) = await scene.workers(1)
    await scene.freeze(zombie)
    scene.node(lease=LEASE)
    await scene.starts("job", times=2)
    written = await steps_of(1)
    zombie.signal_all(SIGCONT)
    await scene.gone(worker.info.pid)
    await eventually(lambda: steps_of(2))
    assert await steps_of(1) == written
    scene.let_go("job")
    (settled,) = await scene.becomes("succeeded", "job")
    assert (settled.attempts, settled.fence, scene.ledger.count("end", "job")) == (2, 2, 1)


@pytest.mark.databases("postgres")
async def test_starting_nodes_take_no_job_from_a_working_one(scene):
    """L4: only jobs of expired leases are recovered; a start recovers nothing."""
    scene.node(lease=LEASE)
    for kind in KINDS:
        await scene.submit(kind, kind, sleep=6)
    for kind in KINDS:
        await scene.starts(kind)
    for _ in range(3):
        scene.node(lease=LEASE)
    await scene.workers(4)
    await scene.becomes("succeeded")
    assert set(scene.ledger.per_key("start").values()) == {1}
