"""How long jobs lie idle when what runs them dies or is told to end.

    python bench/recovery.py --url postgresql://… --rounds 20 --lease 2

Each fault `rounds` times, with `--jobs` jobs at work: SIGKILL of a whole node, whose jobs another node starts again
when the lease has run out; SIGKILL of one of a node's two worker processes, and of its only one, with other jobs each
time, since those that were hit run alone from then on; SIGKILL of the process of a job that runs alone; SIGTERM with no
time to drain, whose jobs another node starts. Measured from the signal to the next start of each job, on the clock that
all processes of the machine share, with the node that takes over at work already. The database must be one of its own;
it is migrated. Exit code 1 if a target is missed.
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


class Asked(NamedTuple):
    """What is to be measured."""

    url: str
    rounds: int
    lease: float
    jobs: int
    only: str


class Ground:
    """Jobs that never end, on nodes that do."""

    def __init__(self, scene: Scene, asked: Asked) -> None:
        self._scene = scene
        self._asked = asked
        self._keys: list[str] = []
        self.taken: list[float] = []

    async def begin(self) -> None:
        """Have jobs started, in place of those that were."""
        await self._scene.engine.jobs.cancel([await self._id(key) for key in self._keys], reason="measured")
        self._keys = [f"{time.time_ns()}-{n}" for n in range(self._asked.jobs)]
        for key in self._keys:
            await self._scene.submit(key, sleep=1e6, max_attempts=1_000)
        for key in self._keys:
            await self._scene.starts(key)

    async def _id(self, key: str) -> JobId:
        return (await self._scene.job(key)).id

    async def node(self, workers: int, **options: object) -> Node:
        """Another node, at work; so many workers are there then."""
        node = self._scene.node(lease=self._asked.lease, drain=0, **options)
        await self._scene.workers(workers)
        return node

    def last(self) -> dict[str, Entry]:
        """The latest start of each job."""
        return {entry.key: entry for entry in self._scene.ledger.entries("start") if entry.key in self._keys}

    async def workers(self, count: int) -> None:
        """Wait until so many are at work."""
        await self._scene.workers(count)

    async def kill_one(self) -> None:
        """Kill the process that runs the most of the jobs, and measure."""
        last = self.last()
        victim = Counter(entry.pid for entry in last.values()).most_common(1)[0][0]
        hit, fault = {key: entry for key, entry in last.items() if entry.pid == victim}, time.monotonic()
        os.kill(victim, SIGKILL)
        await self.measure(fault, hit)

    async def measure(self, fault: float, hit: dict[str, Entry]) -> None:
        """Wait until those that were hit have started again; note how long each took."""

        async def again() -> bool:
            last = self.last()
            return all(last[key].at > hit[key].at for key in hit)

        await eventually(again, within=self._asked.lease + 60)
        self.taken += [self.last()[key].at - fault for key in hit]


async def node_killed(ground: Ground, rounds: int) -> None:
    """SIGKILL of a node and all below it."""
    holder = await ground.node(1)
    await ground.begin()
    for _ in range(rounds):
        other = await ground.node(2)
        hit, fault = ground.last(), time.monotonic()
        holder.signal_all(SIGKILL)
        await ground.measure(fault, hit)
        holder = other
    holder.signal_all(SIGKILL)


async def one_of_two_killed(ground: Ground, rounds: int) -> None:
    """SIGKILL of one of two worker processes."""
    await _workers_killed(ground, rounds, 2)


async def only_one_killed(ground: Ground, rounds: int) -> None:
    """SIGKILL of the only worker process."""
    await _workers_killed(ground, rounds, 1)


async def _workers_killed(ground: Ground, rounds: int, processes: int) -> None:
    node = await ground.node(processes, processes=processes)
    for _ in range(rounds):
        await ground.begin()
        await ground.kill_one()
        await ground.workers(processes)
    node.signal_all(SIGKILL)


async def alone_killed(ground: Ground, rounds: int) -> None:
    """SIGKILL of the process of a job that runs alone, since the process it ran in died."""
    node = await ground.node(1)
    await ground.begin()
    await ground.kill_one()
    ground.taken.clear()
    for _ in range(rounds):
        await ground.kill_one()
    node.signal_all(SIGKILL)


async def node_ended(ground: Ground, rounds: int) -> None:
    """SIGTERM, and no time to drain."""
    holder = await ground.node(1)
    await ground.begin()
    for _ in range(rounds):
        other = await ground.node(2)
        hit, fault = ground.last(), time.monotonic()
        holder.signal(SIGTERM)
        await ground.measure(fault, hit)
        holder.wait()
        holder = other
    holder.signal_all(SIGKILL)


async def main(asked: Asked) -> bool:
    """Measure all and tell; whether all targets are met."""
    engine = await open_engine(Settings(database_url=asked.url), migrate=True)
    faults = {
        "node killed": (node_killed, asked.lease + 2.0),
        "one of two worker processes killed": (one_of_two_killed, 1.0),
        "only worker process killed": (only_one_killed, 1.0),
        "process of a job alone killed": (alone_killed, 1.0),
        "node told to end": (node_ended, 0.5),
    }
    met = True
    print(f"{asked.url.split('://')[0]}, lease {asked.lease:g} s, {asked.rounds} rounds, {asked.jobs} jobs at work")
    print(f"{'seconds until a job starts again':36}{'starts':>8}{'p50':>8}{'p99':>8}{'max':>8}{'target':>8}")
    try:
        for name, (measure, target) in faults.items():
            if asked.only not in name:
                continue
            with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
                scene = Scene(asked.url, Path(folder), engine, stack)
                ground = Ground(scene, asked)
                await scene.workers(0)
                await measure(ground, asked.rounds)
                await engine.jobs.cancel(list(scene._jobs.values()), reason="measured")  # noqa: SLF001
            await _forgotten(engine)
            taken = sorted(ground.taken)
            met &= taken[-1] <= target
            figures = (taken[len(taken) // 2], taken[ceil(0.99 * len(taken)) - 1], taken[-1], target)
            print(f"{name:36}{len(taken):8}{''.join(f'{figure:8.2f}' for figure in figures)}", flush=True)
    finally:
        await engine.aclose()
    return met


async def _forgotten(engine: Engine) -> None:
    """Until killed workers have left the register, so that the next fault begins with nobody."""
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
    given = parser.parse_args()
    sys.exit(0 if asyncio.run(main(Asked(given.url, given.rounds, given.lease, given.jobs, given.only))) else 1)
