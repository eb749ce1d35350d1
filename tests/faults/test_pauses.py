"""Paused queues with real workers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.engine.claiming.dispatch_settings import REFRESH_INTERVAL_S

if TYPE_CHECKING:
    from tests.support.fault_env import Scene


async def test_no_node_starts_a_job_of_a_paused_queue_until_the_queue_is_resumed(scene: Scene) -> None:
    """A pause applies to nodes that start later, affects no other queue, and delays jobs without losing them."""
    await scene.engine.queues.pause("default", reason="a test", by="key:test")
    for _ in range(2):
        scene.node(queues="default:5,other:5")
    await scene.workers(2)
    await scene.submit("paused")
    await other_queue_runs(scene, "other-0", "other-1", "other-2")
    await assert_not_started(scene, "paused")

    await scene.engine.queues.resume("default", by="key:test")
    await scene.becomes("succeeded", "paused")
    assert scene.ledger.count("start", "paused") == 1


async def test_a_busy_worker_that_frees_its_slot_does_not_claim_from_a_paused_queue(scene: Scene) -> None:
    """The job behind the running one stays ready, although its worker has a free slot and claims from other queues."""
    scene.node(queues="default:1,other:1")
    await scene.submit("first", sleep=600, held=True)
    await scene.starts("first")
    await scene.submit("behind")
    await scene.engine.queues.pause("default", reason="", by="key:test")
    await asyncio.sleep(REFRESH_INTERVAL_S)  # the promised bound: every later claim knows the pause
    scene.let_go("first")
    await scene.becomes("succeeded", "first")
    await other_queue_runs(scene, "other-0", "other-1", "other-2")
    await assert_not_started(scene, "behind")

    await scene.engine.queues.resume("default", by="key:test")
    await scene.becomes("succeeded", "behind")
    assert scene.ledger.count("start", "behind") == 1


async def other_queue_runs(scene: Scene, *keys: str) -> None:
    """Run jobs of another queue in turn: meanwhile the worker has claimed from its free slots several times."""
    for key in keys:
        await scene.submit(key, queue="other")
        await scene.becomes("succeeded", key)


async def assert_not_started(scene: Scene, key: str) -> None:
    job = await scene.job(key)
    assert (job.status, job.fence) == ("ready", 0)
    assert scene.ledger.count("start", key) == 0
