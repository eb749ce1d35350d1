"""Queues that rest, with real workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.fault_env import Scene


async def test_nothing_of_a_paused_queue_is_started_on_any_node_until_it_is_resumed(scene: Scene) -> None:
    """Pausing survives the nodes, hurts no other queue, and what was submitted meanwhile runs when it is over."""
    await scene.engine.queues.pause("default", reason="a test", by="key:test")
    for _ in range(2):
        scene.node(queues="default:5,other:5")
    await scene.workers(2)
    await scene.submit("resting")
    for n in range(3):
        await scene.submit(f"other-{n}", queue="other")
    await scene.becomes("succeeded", *[f"other-{n}" for n in range(3)])
    await scene.submit("later", queue="other")
    await scene.becomes("succeeded", "later")
    assert (await scene.job("resting")).status == "ready"

    await scene.engine.queues.resume("default", by="key:test")
    await scene.becomes("succeeded", "resting")
    assert scene.ledger.count("start", "resting") == 1


async def test_a_pause_holds_back_workers_that_are_at_it(scene: Scene) -> None:
    """What is claimed after a worker has seen the pause is of other queues only."""
    scene.node(queues="default:1,other:1")
    await scene.submit("first", sleep=600, held=True)
    await scene.starts("first")
    await scene.submit("behind")
    await scene.engine.queues.pause("default", reason="", by="key:test")
    await scene.submit("elsewhere", queue="other")
    await scene.becomes("succeeded", "elsewhere")
    scene.let_go("first")
    await scene.becomes("succeeded", "first")
    await scene.submit("elsewhere-again", queue="other")
    await scene.becomes("succeeded", "elsewhere-again")

    await scene.engine.queues.resume("default", by="key:test")
    await scene.becomes("succeeded", "behind")
