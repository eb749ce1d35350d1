"""Jobs that a real worker has claimed ahead: cancelled, paused or needed elsewhere before they start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from holdfast.engine.claiming.dispatch_settings import REFRESH_INTERVAL_S
from holdfast.model.job import JobSpec
from tests.support.eventually import eventually
from tests.support.fault_env import TIMEOUT_S

if TYPE_CHECKING:
    from tests.support.fault_env import Scene

pytestmark = pytest.mark.by_http_too("sqlite", "postgres", "mysql")

QUICK_JOBS = 400
"""Jobs that let a worker measure a high rate, so that it claims ahead."""


async def claim_ahead(scene: Scene, *behind: str, **options: float | bool) -> None:
    """Start a worker with one slot, in which "slow" runs, and wait until it has claimed the jobs behind that."""
    quick = JobSpec(type="sink", payload={"key": "quick"})
    await scene.engine.jobs.submit_many([quick] * QUICK_JOBS)
    await scene.submit("slow", sleep=600, held=True)
    for key in behind:
        await scene.submit(key, **options)

    async def all_claimed() -> bool:
        return all([(await scene.job(key)).fence for key in behind])

    scene.node(queues="default:1,other:1")
    await scene.starts("slow")
    await eventually(all_claimed, within=TIMEOUT_S)


async def test_a_job_that_is_cancelled_after_its_claim_never_starts(scene: Scene) -> None:
    """P41: the worker checks jobs that have waited before it starts them."""
    await claim_ahead(scene, "cancelled")
    await scene.engine.jobs.cancel([(await scene.job("cancelled")).id], reason="a test")
    await asyncio.sleep(REFRESH_INTERVAL_S)  # the promised bound: the worker checks every later start
    scene.let_go("slow")
    await scene.submit("after")
    await scene.becomes("succeeded", "slow", "after")
    assert (await scene.job("cancelled")).status == "cancelled"
    assert scene.ledger.count("start", "cancelled") == 0


async def test_a_job_that_is_paused_after_its_claim_is_released_and_uses_no_attempt(scene: Scene) -> None:
    """It starts when its queue is resumed."""
    await claim_ahead(scene, "paused")
    await scene.engine.queues.pause("default", reason="", by="key:test")
    await asyncio.sleep(REFRESH_INTERVAL_S)  # the promised bound: every later check knows the pause
    scene.let_go("slow")
    await scene.becomes("succeeded", "slow")
    await scene.submit("other", queue="other")
    await scene.becomes("succeeded", "other")
    (job,) = await scene.becomes("ready", "paused")
    assert (job.attempts, job.releases) == (0, 0)
    assert scene.ledger.count("start", "paused") == 0

    await scene.engine.queues.resume("default", by="key:test")
    (job,) = await scene.becomes("succeeded", "paused")
    assert (job.attempts, scene.ledger.count("start", "paused")) == (1, 1)


async def test_slow_jobs_that_a_busy_worker_claimed_ahead_move_to_an_idle_one(scene: Scene) -> None:
    """All of them run at once, although the first worker claimed them and has one slot."""
    behind = [f"behind-{n}" for n in range(8)]
    await claim_ahead(scene, *behind, sleep=600, held=True)
    scene.node(queues="default:20")
    for key in behind:
        await scene.starts(key)
    for key in ("slow", *behind):
        scene.let_go(key)
    for job in await scene.becomes("succeeded", "slow", *behind):
        assert (job.attempts, job.releases) == (1, 0)
    assert [scene.ledger.count("start", key) for key in behind] == [1] * len(behind)
