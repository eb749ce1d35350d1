"""Time until jobs start again after their worker or node was killed or stopped.

    python bench/recovery.py --url postgresql://… --rounds 20 --lease 2

Runs each fault `--rounds` times with `--jobs` running jobs: SIGKILL of a whole node, whose jobs another node starts
when the lease has expired; SIGKILL of one of two worker processes, and of the only one, each time with new jobs,
because affected jobs run isolated afterwards; SIGKILL of a worker process with 400 jobs of 5 s, which start again in
groups; SIGKILL of the process of an isolated job; SIGTERM without time to
drain, whose jobs another node starts. Measures from the signal to the next start of each job, by the monotonic clock;
the node that takes over is running already. Use a database that nothing else uses; it is migrated. Exit code 1 if a
target is missed.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.compose import open_engine  # noqa: E402
from holdfast.config import Settings  # noqa: E402
from holdfast.engine.engine import Engine  # noqa: E402
from holdfast.engine.jobs.reap import reap  # noqa: E402
from holdfast.model.ids import JobId  # noqa: E402
from tests.support.eventually import eventually  # noqa: E402
from tests.support.fault_env import Scene  # noqa: E402
from tests.support.ledger import Entry  # noqa: E402
from tests.support.nodes import Node  # noqa: E402


class Options(NamedTuple):
    """Options of the command line."""

    url: str
    rounds: int
    lease: float
    jobs: int
    only: str


MANY_JOBS = 400
MANY_JOBS_SECONDS = 5.0
"""Number and run time of the jobs of a worker process that is killed with many coroutines."""


class RecoveryBench:
    """Jobs that never finish, on nodes that are killed."""

    def __init__(self, scene: Scene, options: Options) -> None:
        self._scene = scene
        self._asked = options
        self._keys: list[str] = []
        self.durations: list[float] = []

    async def begin(self) -> None:
        """Cancel the previous jobs and start new ones."""
        await self._scene.engine.jobs.cancel([await self._id(key) for key in self._keys], reason="measured")
        self._keys = [f"{time.time_ns()}-{n}" for n in range(self._asked.jobs)]
        for key in self._keys:
            await self._scene.submit(key, sleep=1e6, max_attempts=1_000)
        for key in self._keys:
            await self._scene.starts(key)

    async def begin_many(self) -> Node:
        """Submit many jobs that end by themselves, and start a worker process that runs all of them at a time."""
        self._keys = [f"{time.time_ns()}-{n}" for n in range(MANY_JOBS)]
        for key in self._keys:
            await self._scene.submit(key, sleep=MANY_JOBS_SECONDS, max_attempts=5)
        node = await self.node(1, queues=f"default:{MANY_JOBS}")
        for key in self._keys:
            await self._scene.starts(key)
        return node

    async def _id(self, key: str) -> JobId:
        return (await self._scene.job(key)).id

    async def node(self, workers: int, **options: object) -> Node:
        """Start another node and wait until there are this many workers in total."""
        node = self._scene.node(lease=self._asked.lease, drain=0, **options)
        await self._scene.workers(workers)
        return node

    def last(self) -> dict[str, Entry]:
        """Return the latest start of each job."""
        return {entry.key: entry for entry in self._scene.ledger.entries("start") if entry.key in self._keys}

    async def workers(self, count: int) -> None:
        """Wait until this many workers are registered."""
        await self._scene.workers(count)

    async def kill_one(self) -> None:
        """Kill the process that runs most of the jobs, and measure."""
        last = self.last()
        victim = Counter(entry.pid for entry in last.values()).most_common(1)[0][0]
        hit, fault = {key: entry for key, entry in last.items() if entry.pid == victim}, time.monotonic()
        os.kill(victim, SIGKILL)
        await self.measure(fault, hit)

    async def finish(self) -> None:
        """Wait until all jobs have succeeded."""
        await self._scene.becomes("succeeded", *self._keys)

    async def measure(self, fault: float, hit: dict[str, Entry]) -> None:
        """Wait until the affected jobs have started again; record how long each took."""

        async def restarted() -> bool:
            last = self.last()
            return all(last[key].at > hit[key].at for key in hit)

        await eventually(restarted, within=self._asked.lease + 60 + len(hit))
        self.durations += [self.last()[key].at - fault for key in hit]


async def node_killed(recovery: RecoveryBench, rounds: int) -> None:
    """Kill a node with all its processes."""
    holder = await recovery.node(1)
    await recovery.begin()
    for _ in range(rounds):
        other = await recovery.node(2)
        hit, fault = recovery.last(), time.monotonic()
        holder.signal_all(SIGKILL)
        await recovery.measure(fault, hit)
        holder = other
    holder.signal_all(SIGKILL)


async def one_of_two_killed(recovery: RecoveryBench, rounds: int) -> None:
    """Kill one of two worker processes."""
    await _workers_killed(recovery, rounds, 2)


async def only_one_killed(recovery: RecoveryBench, rounds: int) -> None:
    """Kill the only worker process."""
    await _workers_killed(recovery, rounds, 1)


async def _workers_killed(recovery: RecoveryBench, rounds: int, processes: int) -> None:
    node = await recovery.node(processes, processes=processes)
    for _ in range(rounds):
        await recovery.begin()
        await recovery.kill_one()
        await recovery.workers(processes)
    node.signal_all(SIGKILL)


async def many_killed(recovery: RecoveryBench, rounds: int) -> None:
    """Kill a worker process with many jobs that run for seconds; at most three rounds."""
    for _ in range(min(rounds, 3)):
        node = await recovery.begin_many()
        await recovery.kill_one()
        await recovery.finish()
        node.signal(SIGTERM)
        node.wait()


async def isolated_killed(recovery: RecoveryBench, rounds: int) -> None:
    """Kill the process of an isolated job."""
    node = await recovery.node(1)
    await recovery.begin()
    await recovery.kill_one()
    recovery.durations.clear()
    for _ in range(rounds):
        await recovery.kill_one()
    node.signal_all(SIGKILL)


async def node_ended(recovery: RecoveryBench, rounds: int) -> None:
    """Stop a node with SIGTERM and no time to drain."""
    holder = await recovery.node(1)
    await recovery.begin()
    for _ in range(rounds):
        other = await recovery.node(2)
        hit, fault = recovery.last(), time.monotonic()
        holder.signal(SIGTERM)
        await recovery.measure(fault, hit)
        holder.wait()
        holder = other
    holder.signal_all(SIGKILL)


async def main(options: Options) -> bool:
    """Measure all faults and print the results; return whether all targets are met."""
    engine = await open_engine(Settings(database_url=options.url), migrate=True)
    faults = {
        "node killed": (node_killed, options.lease + 2.0),
        "one of two worker processes killed": (one_of_two_killed, 1.0),
        "only worker process killed": (only_one_killed, 1.0),
        "worker process with 400 jobs killed": (many_killed, 3 * MANY_JOBS_SECONDS),
        "process of an isolated job killed": (isolated_killed, 1.0),
        "node stopped": (node_ended, 0.5),
    }
    met = True
    print(f"{options.url.split('://')[0]}, lease {options.lease:g} s, {options.rounds} rounds, {options.jobs} jobs")
    print(f"{'seconds until a job starts again':36}{'starts':>8}{'p50':>8}{'p99':>8}{'max':>8}{'target':>8}")
    try:
        for name, (measure, target) in faults.items():
            if options.only not in name:
                continue
            with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
                scene = Scene(options.url, Path(folder), engine, stack)
                recovery = RecoveryBench(scene, options)
                await scene.workers(0)
                await measure(recovery, options.rounds)
                await engine.jobs.cancel(list(scene._jobs.values()), reason="measured")  # noqa: SLF001
            await _wait_until_no_workers(engine)
            durations = sorted(recovery.durations)
            met &= durations[-1] <= target
            values = (durations[len(durations) // 2], durations[ceil(0.99 * len(durations)) - 1], durations[-1], target)
            print(f"{name:36}{len(durations):8}{''.join(f'{value:8.2f}' for value in values)}", flush=True)
    finally:
        await engine.aclose()
    return met


async def _wait_until_no_workers(engine: Engine) -> None:
    """Wait until killed workers are removed, so that the next fault starts without workers."""
    while await engine.workers.all():
        await reap(engine.store, default=engine.rules.retry, rng=lambda: 0.5)
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="the database")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--lease", type=float, default=2.0, help="seconds")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--only", default="", metavar="WORDS", help="only faults with these words in their name")
    arguments = parser.parse_args()
    sys.exit(
        0
        if asyncio.run(main(Options(arguments.url, arguments.rounds, arguments.lease, arguments.jobs, arguments.only)))
        else 1
    )
