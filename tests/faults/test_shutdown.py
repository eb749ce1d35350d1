"""Nodes that are stopped. Two slow cases run only with HOLDFAST_LONG_TESTS=1."""

from signal import SIGTERM

import pytest

from tests.support.fault_env import KINDS
from tests.support.long import LONG


async def test_a_stopped_node_finishes_running_jobs_and_claims_no_more(scene):
    """F04, P77: a node that gets SIGTERM finishes running jobs, leaves the others ready, and unregisters."""
    node = scene.node(queues="default:3", drain=60)
    for kind in KINDS:
        await scene.submit(kind, kind, sleep=600, held=True)
    for kind in KINDS:
        await scene.starts(kind)
    for n in range(5):
        await scene.submit(f"behind-{n}")
    node.signal(SIGTERM)
    await scene.says(node, "waiting for 3 running jobs")
    for kind in KINDS:
        scene.let_go(kind)
    assert node.wait() == 0
    await scene.becomes("succeeded", *KINDS)
    for n in range(5):
        job = await scene.job(f"behind-{n}")
        assert (job.status, job.attempts) == ("ready", 0)
    assert set(scene.ledger.per_key("start")) == set(KINDS)
    await scene.workers(0)
    assert "all unfinished jobs were released" in node.log


@pytest.mark.by_http_too("sqlite")
async def test_jobs_that_do_not_finish_are_released_and_run_elsewhere_at_once(scene):
    """F04: they spend no attempt and do not wait for the lease, which is far longer than the test."""
    node = scene.node(lease=600, drain=0)
    for kind in KINDS:
        await scene.submit(kind, kind, sleep=600, held=True)
    for kind in KINDS:
        await scene.starts(kind)
    node.signal(SIGTERM)
    assert node.wait() == 0
    scene.node(lease=600)
    for kind in KINDS:
        await scene.starts(kind, times=2)
        scene.let_go(kind)
    await scene.becomes("succeeded")
    for kind in KINDS:
        job = await scene.job(kind)
        assert (job.attempts, job.releases, scene.ledger.count("start", kind)) == (1, 1, 2)
        assert await scene.attempts(kind) == []
    assert [scene.ledger.count("end", kind) for kind in KINDS] == [1, 1, 1]
    await scene.workers(1)


@pytest.mark.databases("sqlite")
async def test_a_node_drained_through_the_service_under_load_loses_and_repeats_no_job(scene):
    """F04: all of its processes finish running jobs, another node runs the rest, and no attempt is wasted."""
    node = scene.node(processes=2, queues="default:2", lease=9, drain=60)
    await scene.submit("held", sleep=600, held=True)
    await scene.starts("held")
    keys = [f"job-{n}" for n in range(60)]
    for key in keys:
        await scene.submit(key, sleep=0.5)
    rows = await scene.workers(2)
    assert [row.info.node for row in rows] == [rows[0].info.node] * 2
    for _ in range(2):
        _, drained = await scene.engine.workers.drain(rows[1].info.id)
        assert all(row.draining for row in drained)
    assert len(drained) == 2
    await scene.says(node, "draining: requested through the service")
    assert len(scene.ledger.per_key("end")) < len(keys)
    after = scene.node(lease=600)
    await scene.becomes("succeeded", *keys)
    scene.let_go("held")
    assert node.wait() == 0
    await scene.becomes("succeeded", "held", *keys)
    assert [scene.ledger.count("end", key) for key in ["held", *keys]] == [1] * 61
    assert {(await scene.job(key)).attempts for key in keys} == {1}
    (row,) = await scene.workers(len(after.children()))
    assert (row.draining, row.info.node != rows[0].info.node) == (False, True)
    assert "all unfinished jobs were released" in node.log


@pytest.mark.databases("sqlite")
async def test_a_second_signal_releases_running_jobs_at_once(scene):
    """F04: running jobs are released without waiting for the end of the drain period."""
    node = scene.node(drain=3600)
    for kind in KINDS:
        await scene.submit(kind, kind, sleep=3600)
        await scene.starts(kind)
    node.signal(SIGTERM)
    await scene.says(node, "waiting for 3 running jobs")
    node.signal(SIGTERM)
    assert node.wait() == 0
    for kind in KINDS:
        job = await scene.job(kind)
        assert (job.status, job.attempts, job.releases) == ("ready", 0, 1)
    await scene.workers(0)


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("kind, action", [("async", "block"), ("thread", "hold_gil")])
@pytest.mark.parametrize("signals", [pytest.param(1, marks=pytest.mark.skipif(not LONG, reason="long")), 2])
async def test_a_blocked_handler_does_not_prevent_a_node_from_ending(scene, kind, action, signals):
    """F04: its process is killed after the drain period, or after a second signal; the job is released."""
    node = scene.node(lease=600, drain=1)
    await scene.submit("stuck", kind, action=action, amount=3600)
    await scene.starts("stuck")
    node.signal(SIGTERM)
    await scene.says(node, "stopping")
    if signals > 1:
        node.signal(SIGTERM)
    assert node.wait() == 0
    job = await scene.job("stuck")
    assert (job.status, job.attempts, job.releases) == ("ready", 0, 1)
    await scene.workers(0)


@pytest.mark.databases("sqlite")
async def test_a_node_that_is_stopped_while_it_starts_ends(scene):
    """F04: it leaves no worker registered, however far the start has come."""
    node = scene.node()
    await scene.says(node, "stops gracefully")
    node.signal(SIGTERM)
    assert node.wait() == 0
    await scene.workers(0)
