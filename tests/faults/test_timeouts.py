"""Handlers that exceed their timeout and do not stop.

A handler is stopped at its timeout, and its slot is abandoned some seconds later. These tests wait for that, in
parallel where possible, on nodes with a queue each.
"""

import asyncio

import pytest

from tests.support.long import LONG


async def start_job_process(scene):
    """Wait for an idle job process, so that its start does not delay the test."""
    await scene.submit("first", "process")
    await scene.becomes("succeeded", "first")


@pytest.mark.by_http_too("sqlite")
async def test_a_handler_is_stopped_at_its_timeout(scene):
    """S19: for each isolation; the slot is reused and the process continues."""
    node = scene.node(queues="default:1")
    await start_job_process(scene)
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
    """P26, F33: a handler that ignores its stop loses its slot; one that blocks a process loses the process."""
    blocks = "spin" if LONG or dialect == "sqlite" else "block"  # "spin" computes, "block" sleeps
    async with asyncio.TaskGroup() as group:
        for kind in ("async", "thread"):
            group.create_task(_lose_slot_and_replace_process(scene, kind))
        for kind, action in (("async", blocks), ("thread", "hold_gil")):
            group.create_task(_kill_blocked_process(scene, kind, action))


async def _lose_slot_and_replace_process(scene, kind):
    """It is reported as timed out while it runs on; other jobs finish; the next process has the slot again."""
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


async def _kill_blocked_process(scene, kind, action):
    """Neither its event loop nor a thread can act on the timeout. Jobs beside it are released without an attempt."""
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
    """P26, F33: SIGTERM first, then SIGKILL; the worker is not replaced."""
    node = scene.node(queues="default:1")
    await start_job_process(scene)
    await scene.submit("stubborn", "process", sleep=600, ignore_cancel=True, timeout=0.5, max_attempts=1)
    await scene.starts("stubborn")
    await scene.becomes("dead", "stubborn")
    await scene.gone(scene.ledger.entries("start", "stubborn")[0].pid)
    await scene.submit("after")
    await scene.becomes("succeeded", "after")
    assert [each.outcome for each in await scene.attempts("stubborn")] == ["timed_out"]
    assert "replaced" not in node.log


async def test_an_endless_loop_in_a_job_process_is_killed_at_its_timeout(scene):
    """F33: in Python code as well as in C code."""
    node = scene.node(queues="default:1")
    for action in ("spin", "hold_gil"):
        await start_job_process(scene)
        await scene.submit(action, "process", action=action, amount=600, timeout=0.5, max_attempts=1)
        await scene.becomes("dead", action)
        assert [each.outcome for each in await scene.attempts(action)] == ["timed_out"]
        await scene.gone(scene.ledger.entries("start", action)[0].pid)
    assert "starting another" not in node.log
