"""Handlers that take too long and will not stop.

After its timeout a handler is told to end; some seconds later its slot is given up: these tests wait for that, and
what can be waited for at the same time is, on nodes with a queue each.
"""

import asyncio

import pytest

from tests.support.long import LONG


async def has_a_process_ready(scene):
    """To start one takes its time, and counts."""
    await scene.submit("first", "process")
    await scene.becomes("succeeded", "first")


@pytest.mark.by_http_too("sqlite")
async def test_a_handler_is_stopped_at_its_timeout(scene):
    """S19: wherever it runs; the slot is used again and the process stays."""
    node = scene.node(queues="default:1")
    await has_a_process_ready(scene)
    for kind in ("async", "thread", "process"):
        await scene.submit(kind, kind, sleep=600, timeout=0.5, max_attempts=1)
    await scene.submit("after")
    await scene.becomes("succeeded", "after")
    await scene.becomes("dead", "async", "thread", "process")
    for key in ("async", "thread", "process"):
        assert [each.outcome for each in await scene.attempts(key)] == ["timed_out"]
        assert scene.ledger.count("start", key) == 1
        assert scene.ledger.count("end", key) == 0
    assert "starting another" not in node.log


async def test_handlers_that_do_not_stop_cost_at_most_a_slot_or_a_process(scene, dialect):
    """P26, F33: stubborn ones lose their slots, and what blocks a whole process loses it, each at its timeout."""
    blocks = "spin" if LONG or dialect == "sqlite" else "block"  # the one computes all the while, the other rests
    async with asyncio.TaskGroup() as group:
        for kind in ("async", "thread"):
            group.create_task(_loses_its_slot_and_has_its_process_replaced(scene, kind))
        for kind, action in (("async", blocks), ("thread", "hold_gil")):
            group.create_task(_has_its_process_ended_by_the_supervisor(scene, kind, action))


async def _loses_its_slot_and_has_its_process_replaced(scene, kind):
    """It is reported as timed out while it runs on; the others end first; its slot comes back with the next process."""
    queue = f"stubborn-{kind}"
    stubborn, beside, after = [f"{queue} {name}" for name in ("itself", "beside", "after")]
    node = scene.node(queues=f"{queue}:2", drain=600)
    (before,) = await scene.workers_of(node)
    await scene.submit(stubborn, kind, queue=queue, sleep=600, ignore_cancel=True, timeout=0.2, max_attempts=1)
    await scene.starts(stubborn)
    await scene.submit(beside, kind, queue=queue, sleep=600, held=True)
    await scene.becomes("dead", stubborn)
    assert [each.outcome for each in await scene.attempts(stubborn)] == ["timed_out"]
    await scene.says(node, "after it was stopped")
    await scene.submit(after, queue=queue)
    assert (await scene.job(beside)).status == "running"
    scene.let_go(beside)
    await scene.becomes("succeeded", beside, after)
    await scene.gone(before.info.pid)
    (first,), (second,) = scene.ledger.entries("start", beside), scene.ledger.entries("start", after)
    assert first.pid == before.info.pid != second.pid
    assert second.at > scene.ledger.entries("end", beside)[0].at


async def _has_its_process_ended_by_the_supervisor(scene, kind, action):
    """Neither the loop nor a thread there can act on the timeout. Jobs beside are handed back, at no attempt's cost."""
    queue = f"stuck-{kind}"
    stuck, beside = f"{queue} itself", f"{queue} beside"
    node = scene.node(queues=f"{queue}:2")
    await scene.submit(beside, queue=queue, sleep=600, held=True)
    await scene.starts(beside)
    await scene.submit(stuck, kind, queue=queue, action=action, amount=600, timeout=0.2, max_attempts=1)
    await scene.becomes("dead", stuck)
    assert [each.outcome for each in await scene.attempts(stuck)] == ["timed_out"]
    await scene.starts(beside, times=2)
    scene.let_go(beside)
    (job,) = await scene.becomes("succeeded", beside)
    assert (job.attempts, job.releases, scene.ledger.count("start", beside)) == (1, 1, 2)
    assert "exceeded the timeout" in node.log


async def test_a_job_process_that_does_not_stop_is_killed(scene):
    """P26, F33: asked first, then killed; nothing else is replaced."""
    node = scene.node(queues="default:1")
    await has_a_process_ready(scene)
    await scene.submit("stubborn", "process", sleep=600, ignore_cancel=True, timeout=0.5, max_attempts=1)
    await scene.starts("stubborn")
    await scene.becomes("dead", "stubborn")
    await scene.gone(scene.ledger.entries("start", "stubborn")[0].pid)
    await scene.submit("after")
    await scene.becomes("succeeded", "after")
    assert [each.outcome for each in await scene.attempts("stubborn")] == ["timed_out"]
    assert "replaced" not in node.log


async def test_an_endless_loop_in_a_job_process_is_killed_at_its_timeout(scene):
    """F33: pure Python or C, it makes no difference."""
    node = scene.node(queues="default:1")
    for action in ("spin", "hold_gil"):
        await has_a_process_ready(scene)
        await scene.submit(action, "process", action=action, amount=600, timeout=0.5, max_attempts=1)
        await scene.becomes("dead", action)
        assert [each.outcome for each in await scene.attempts(action)] == ["timed_out"]
        await scene.gone(scene.ledger.entries("start", action)[0].pid)
    assert "starting another" not in node.log
