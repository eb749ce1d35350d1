"""A limit holds while workers are killed, and all of it can be used afterwards.

    python -m tests.support.servers            # prints URLs of private servers
    python bench/limits_under_kill.py --url postgresql://… --jobs 20000

Two nodes of two worker processes each drain the jobs of a queue of which only `--limit` may run at once. Every
`--every` seconds one worker process gets SIGKILL; each fifth time a whole node does, its supervisor too, so that nobody
tells that its workers are gone and their leases have to run out; another node is started in its place. When the jobs
are done, as many that do not end are started as may run, and the node that has the most of them is killed: all must
run again within the lease and two seconds.

What is checked is what handlers wrote to a file before they went on: an attempt runs from its start to its end, or to
the moment when its process was sent the signal. The database must be one of its own; it is migrated. Exit code 1 if
more than the limit ever ran at once, if a slot or a job was lost, or if that took longer.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from signal import SIGKILL
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.compose import open_engine  # noqa: E402
from holdfast.config import Settings  # noqa: E402
from holdfast.engine.engine import Engine  # noqa: E402
from holdfast.model.job import JobFilter, JobSpec  # noqa: E402
from holdfast.model.limit import queue_limit  # noqa: E402
from tests.support.eventually import eventually  # noqa: E402
from tests.support.fault_env import Scene  # noqa: E402
from tests.support.ledger import Entry  # noqa: E402
from tests.support.nodes import Node  # noqa: E402

LIMIT = queue_limit("default")
NODES, PROCESSES, SLOTS = 2, 2, 5
WHOLE_NODE_EVERY = 5
PATIENCE = 120.0
BATCH = 1_000


class Asked(NamedTuple):
    """What is to be shown."""

    url: str
    jobs: int
    limit: int
    every: float
    lease: float
    sleep: float


class Attempts(NamedTuple):
    """What handlers did."""

    started: int
    cut_off: int
    """That neither ended nor were told to: their process was killed."""
    at_once: int
    """The most that ran at the same time."""


class Killing:
    """Nodes that are killed and replaced."""

    def __init__(self, scene: Scene, lease: float) -> None:
        self._scene = scene
        self._lease = lease
        self.killed: dict[int, float] = {}
        """When each process was sent the signal."""
        self.workers = self.nodes = 0
        self.alive = [self._node() for _ in range(NODES)]

    def one(self) -> None:
        """Kill a worker process, or sometimes a whole node."""
        victim = random.choice(self.alive)
        if (self.workers + self.nodes) % WHOLE_NODE_EVERY == WHOLE_NODE_EVERY - 1:
            self.node(victim)
        elif children := victim.children():
            self._kill([random.choice(children)])
            self.workers += 1

    def node(self, victim: Node) -> None:
        """Kill a node and all below it; start another."""
        self.alive.remove(victim)
        self._kill(victim.all_processes())
        self.nodes += 1
        self.alive.append(self._node())

    def _node(self) -> Node:
        return self._scene.node(lease=self._lease, queues=f"default:{SLOTS}", processes=PROCESSES, drain=0.0)

    def _kill(self, pids: Sequence[int]) -> None:
        self.killed |= dict.fromkeys(pids, time.monotonic())
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)


def attempts_in(entries: Sequence[Entry], killed: Mapping[int, float]) -> Attempts:
    """Sweep over starts and ends."""
    ended = {(each.job, each.fence): each.at for each in entries if each.event in ("end", "cancelled")}
    changes: list[tuple[float, int]] = []
    started = cut_off = 0
    for start in entries:
        if start.event != "start":
            continue
        started += 1
        over = ended.get((start.job, start.fence))
        if over is None:
            cut_off += 1
            over = killed.get(start.pid, float("inf"))
        changes += [(start.at, 1), (max(over, start.at), -1)]
    running = at_once = 0
    for _, change in sorted(changes):
        running += change
        at_once = max(at_once, running)
    return Attempts(started, cut_off, at_once)


async def drain(engine: Engine, killing: Killing, asked: Asked) -> float:
    """Until all jobs are done, with a kill every so often; seconds it took."""
    for low in range(0, asked.jobs, BATCH):
        keys = range(low, min(asked.jobs, low + BATCH))
        await engine.jobs.submit_many(
            [JobSpec("sink", {"key": f"job-{n}", "sleep": asked.sleep}, max_attempts=1_000) for n in keys]
        )
    began = told = time.monotonic()
    while left := sum(count.jobs for count in await engine.jobs.counts(JobFilter())):
        await asyncio.sleep(asked.every)
        killing.one()
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"  {left:,} jobs left after {killing.workers + killing.nodes} kills", flush=True)
    return time.monotonic() - began


async def recover(scene: Scene, killing: Killing, asked: Asked) -> float:
    """Have as many jobs run as may, kill the node that has the most of them; seconds until all run again."""
    keys = [f"last-{n}" for n in range(asked.limit)]
    for key in keys:
        await scene.submit(key, sleep=1e6, held=True, max_attempts=1_000)

    async def all_run() -> bool:
        last = {each.key: each.pid for each in scene.ledger.entries("start") if each.key in keys}
        return len(last) == len(keys) and not set(last.values()) & set(killing.killed)

    await eventually(all_run, within=PATIENCE)
    holders = Counter(each.pid for each in scene.ledger.entries("start") if each.key in keys)
    victim = max(killing.alive, key=lambda node: sum(holders[pid] for pid in node.children()))
    began = time.monotonic()
    killing.node(victim)
    await eventually(all_run, within=PATIENCE)
    again = max(each.at for each in scene.ledger.entries("start") if each.key in keys)
    for key in keys:
        scene.let_go(key)
    return again - began


async def main(asked: Asked) -> bool:
    """Show it and tell; whether it held."""
    engine = await open_engine(Settings(database_url=asked.url), migrate=True)
    kind, workers = asked.url.split(":", 1)[0], NODES * PROCESSES
    print(f"{kind}: {asked.jobs:,} jobs, at most {asked.limit} at once, {workers} workers", flush=True)
    print(f"  a kill every {asked.every:g} s, lease {asked.lease:g} s", flush=True)
    try:
        if await engine.jobs.counts(JobFilter()):
            raise SystemExit("there are jobs in this database: give an empty one")
        await engine.limits.set(LIMIT, max_running=asked.limit, rate=None)
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            scene = Scene(asked.url, Path(folder), engine, stack)
            killing = Killing(scene, asked.lease)
            took = await drain(engine, killing, asked)
            recovered = await recover(scene, killing, asked)

            async def given_back() -> bool:
                _, standing = await engine.limits.named([LIMIT])
                return standing[LIMIT].used == 0 and not await engine.jobs.counts(JobFilter())

            with suppress(TimeoutError):
                await eventually(given_back, within=PATIENCE)
            lost = (await engine.limits.named([LIMIT]))[1][LIMIT].used
            entries = scene.ledger.entries()
        found = attempts_in(entries, killing.killed)
        undone = asked.jobs - len({each.key for each in entries if each.event == "end" and each.key[:4] == "job-"})
    finally:
        await engine.limits.set(LIMIT, max_running=None, rate=None)
        await engine.aclose()
    bound = asked.lease + 2.0
    held = found.at_once == asked.limit and not lost and not undone
    print(f"  drained in {took:.0f} s: {killing.workers} worker processes and {killing.nodes} nodes killed")
    print(f"  {found.started:,} attempts began, {found.cut_off} were cut off by a kill")
    print(f"  at most {found.at_once} ran at once, {lost} slots lost, {undone} jobs not done")
    late = "" if recovered <= bound else ", MISSED"
    print(f"  all of the limit in use {recovered:.2f} s after the last kill (bound {bound:g} s{late})")
    print("  the limit held" if held else "  THE LIMIT DID NOT HOLD", flush=True)
    return held and not late


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="an empty database")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--limit", type=int, default=5, help="how many may run at once")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two kills")
    parser.add_argument("--lease", type=float, default=3.0, help="seconds")
    parser.add_argument("--sleep", type=float, default=0.005, help="seconds that a job takes")
    given = parser.parse_args()
    asked_for = Asked(given.url, given.jobs, given.limit, given.every, given.lease, given.sleep)
    sys.exit(0 if asyncio.run(main(asked_for)) else 1)
