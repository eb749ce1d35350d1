"""P18: pgqueuer#475, #474, #761: a dead job still occupied the concurrency slot, so it was never reclaimed.

Here a slot is given back by whatever ends the attempt, in its transaction; also by the reaper. Twenty kills with
HOLDFAST_LONG_TESTS=1.
"""

import os
import time
from signal import SIGKILL

from holdfast.model.job import JobFilter
from holdfast.model.limit import queue_limit
from tests.support.eventually import eventually
from tests.support.fault_env import PATIENCE
from tests.support.long import LONG

KILLS = 20 if LONG else 1
MOST = 3


async def test_a_limit_holds_while_workers_are_killed_and_is_fully_usable_afterwards(scene):
    """P18, S16: a sweep over starts and ends never sees more running than may, and no slot stays taken."""
    limit = queue_limit("default")
    await scene.engine.limits.set(limit, max_running=MOST, rate=None)
    killed: dict[int, float] = {}
    alive = [scene.node(lease=1.0, queues="default:5") for _ in range(2)]
    for n in range(KILLS):
        for m in range(4 * MOST):
            await scene.submit(f"job-{n}-{m}", sleep=0.1, max_attempts=1_000)
        await scene.noted("start", times=4 * MOST * n + MOST)
        victim = alive.pop(0)
        pids = victim.everyone()
        for pid in pids:
            os.kill(pid, SIGKILL)
        killed |= dict.fromkeys(pids, time.monotonic())
        alive.append(scene.node(lease=1.0, queues="default:5"))
    await scene.becomes("succeeded")

    assert most_at_once(scene.ledger.entries(), killed) == MOST

    async def given_back() -> bool:
        _, standing = await scene.engine.limits.named([limit])
        return standing[limit].used == 0 and not await scene.engine.jobs.counts(JobFilter())

    await eventually(given_back, within=PATIENCE)


def most_at_once(entries, killed) -> int:
    """Of attempts: from their start to their end, or to the death of their process."""
    ended = {(entry.job, entry.fence): entry.at for entry in entries if entry.event == "end"}
    changes = []
    for start in entries:
        if start.event == "start":
            over = ended.get((start.job, start.fence), killed.get(start.pid))
            assert over is not None, start
            changes += [(start.at, 1), (over, -1)]
    running = most = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most
