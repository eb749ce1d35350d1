"""P18: pgqueuer#475, #474, #761: a dead job still occupied the concurrency slot, so it was never reclaimed.

Here the transaction that ends an attempt releases its slot, even if the reaper runs it. Twenty kills with
HOLDFAST_LONG_TESTS=1.
"""

import os
import time
from signal import SIGKILL

from holdfast.model.job import JobFilter
from holdfast.model.limit import queue_limit
from tests.support.eventually import eventually
from tests.support.fault_env import TIMEOUT_S
from tests.support.long import LONG

KILLS = 20 if LONG else 1
MAX_RUNNING = 3


async def test_a_limit_holds_while_workers_are_killed_and_is_fully_usable_afterwards(scene):
    """P18, S16: a sweep over starts and ends never finds too many running jobs, and no slot stays occupied."""
    limit = queue_limit("default")
    await scene.engine.limits.set(limit, max_running=MAX_RUNNING, rate=None)
    killed: dict[int, float] = {}
    alive = [scene.node(lease=1.0, queues="default:5") for _ in range(2)]
    for n in range(KILLS):
        for m in range(4 * MAX_RUNNING):
            await scene.submit(f"job-{n}-{m}", sleep=0.1, max_attempts=1_000)
        await scene.noted("start", times=4 * MAX_RUNNING * n + MAX_RUNNING)
        victim = alive.pop(0)
        pids = victim.all_processes()
        for pid in pids:
            os.kill(pid, SIGKILL)
        killed |= dict.fromkeys(pids, time.monotonic())
        alive.append(scene.node(lease=1.0, queues="default:5"))
    await scene.becomes("succeeded")

    assert max_concurrency(scene.ledger.entries(), killed) == MAX_RUNNING

    async def released() -> bool:
        _, usage = await scene.engine.limits.named([limit])
        return usage[limit].used == 0 and not await scene.engine.jobs.counts(JobFilter())

    await eventually(released, within=TIMEOUT_S)


def max_concurrency(entries, killed) -> int:
    """Return the largest number of attempts that ran at a time: from start to end, or to the process's death."""
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
