"""Handlers that take too long and will not stop. On SQLite only: no database has a part in this.

After its timeout a handler is told to end; some seconds later its slot is given up: these tests wait for that. One of
them runs only with HOLDFAST_LONG_TESTS=1.
"""

import pytest

from tests.support.long import LONG

only_long = pytest.mark.skipif(not LONG, reason="long")
pytestmark = pytest.mark.databases("sqlite")


async def has_a_process_ready(scene):
    """To start one takes its time, and counts."""
    await scene.submit("first", "process")
    await scene.becomes("succeeded", "first")


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


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_a_handler_that_does_not_stop_loses_its_slot_and_has_its_process_replaced(scene, kind):
    """P26, F33: reported as timed out while it runs on; the others end first; its slot comes back with the next."""
    node = scene.node(queues="default:2", drain=600)
    (before,) = await scene.workers(1)
    await scene.submit("stubborn", kind, sleep=600, ignore_cancel=True, timeout=0.2, max_attempts=1)
    await scene.starts("stubborn")
    await scene.submit("beside", kind, sleep=8)
    await scene.becomes("dead", "stubborn")
    assert [each.outcome for each in await scene.attempts("stubborn")] == ["timed_out"]
    assert (await scene.job("beside")).status == "running"
    await scene.says(node, "does not stop")
    await scene.submit("after")
    await scene.becomes("succeeded", "beside", "after")
    assert scene.ledger.count("start", "beside") == 1
    await scene.gone(before.info.pid)
    (beside,), (after,) = scene.ledger.entries("start", "beside"), scene.ledger.entries("start", "after")
    assert beside.pid == before.info.pid != after.pid
    assert after.at > scene.ledger.entries("end", "beside")[0].at


async def test_a_process_that_does_not_stop_is_killed(scene):
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


@pytest.mark.parametrize("kind, action", [("async", "spin"), pytest.param("thread", "hold_gil", marks=only_long)])
async def test_a_handler_that_blocks_its_whole_process_is_ended_at_its_timeout_all_the_same(scene, kind, action):
    """P26, F33: neither the loop nor a thread there can act on the timeout: the supervisor does.

    Jobs beside it are handed back, no attempt of theirs is spent.
    """
    node = scene.node(queues="default:2")
    await scene.submit("beside", sleep=3)
    await scene.starts("beside")
    await scene.submit("stuck", kind, action=action, amount=600, timeout=0.2, max_attempts=1)
    await scene.becomes("dead", "stuck")
    assert [each.outcome for each in await scene.attempts("stuck")] == ["timed_out"]
    (beside,) = await scene.becomes("succeeded", "beside")
    assert (beside.attempts, beside.releases, scene.ledger.count("start", "beside")) == (1, 1, 2)
    assert "took too long" in node.log


async def test_an_endless_loop_in_a_process_of_its_own_is_killed_at_its_timeout(scene):
    """F33: pure Python or C, it makes no difference."""
    node = scene.node(queues="default:1")
    for action in ("spin", "hold_gil"):
        await has_a_process_ready(scene)
        await scene.submit(action, "process", action=action, amount=600, timeout=0.5, max_attempts=1)
        await scene.becomes("dead", action)
        assert [each.outcome for each in await scene.attempts(action)] == ["timed_out"]
        await scene.gone(scene.ledger.entries("start", action)[0].pid)
    assert "starting another" not in node.log
