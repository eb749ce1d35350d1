"""Check that a limit holds while workers are killed, and is fully usable afterwards.

    python -m tests.support.servers            # prints URLs of private servers
    python bench/limits_under_kill.py --url postgresql://… --jobs 20000

Two nodes with two worker processes each drain a queue of which only `--limit` jobs may run concurrently. Every
`--every` seconds a worker process is killed with SIGKILL; every fifth time a whole node is, including its supervisor,
so that the leases of its workers must expire; another node replaces it. After the drain, as many endless jobs as the
limit allows are started, and the node that runs most of them is killed: all must run again within the lease plus two
seconds.

The check uses what handlers wrote to a file: an attempt lasts from its start to its end, or to the kill of its
process. Use a database that nothing else uses; it is migrated. Exit code 1 if more jobs than the limit ran
concurrently, if a slot or a job was lost, or if the recovery took longer.
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
TIMEOUT_S = 120.0
BATCH = 1_000


class Options(NamedTuple):
    """Options of the command line."""

    url: str
    jobs: int
    limit: int
    every: float
    lease: float
    sleep: float


class Attempts(NamedTuple):
    """Summary of the attempts."""

    started: int
    cut_off: int
    """Attempts whose process was killed."""
    concurrent: int
    """Maximum number of concurrent attempts."""


class NodeKiller:
    """Nodes that are killed and replaced."""

    def __init__(self, scene: Scene, lease: float) -> None:
        self._scene = scene
        self._lease = lease
        self.killed: dict[int, float] = {}
        """Time of the kill by process id."""
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
    """Summarize the attempts from their starts and ends."""
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
    running = concurrent = 0
    for _, change in sorted(changes):
        running += change
        concurrent = max(concurrent, running)
    return Attempts(started, cut_off, concurrent)


async def drain(engine: Engine, killing: NodeKiller, options: Options) -> float:
    """Drain all jobs with regular kills; return the time in seconds."""
    for low in range(0, options.jobs, BATCH):
        keys = range(low, min(options.jobs, low + BATCH))
        await engine.jobs.submit_many(
            [JobSpec("sink", {"key": f"job-{n}", "sleep": options.sleep}, max_attempts=1_000) for n in keys]
        )
    start_time = reported = time.monotonic()
    while remaining := sum(count.jobs for count in await engine.jobs.counts(JobFilter())):
        await asyncio.sleep(options.every)
        killing.one()
        if time.monotonic() - reported > 30:
            reported = time.monotonic()
            print(f"  {remaining:,} jobs remain after {killing.workers + killing.nodes} kills", flush=True)
    return time.monotonic() - start_time


async def recover(scene: Scene, killing: NodeKiller, options: Options) -> float:
    """Run as many jobs as the limit allows, kill a node; return the seconds until all run again."""
    keys = [f"last-{n}" for n in range(options.limit)]
    for key in keys:
        await scene.submit(key, sleep=1e6, held=True, max_attempts=1_000)

    async def all_run() -> bool:
        last = {each.key: each.pid for each in scene.ledger.entries("start") if each.key in keys}
        return len(last) == len(keys) and not set(last.values()) & set(killing.killed)

    await eventually(all_run, within=TIMEOUT_S)
    holders = Counter(each.pid for each in scene.ledger.entries("start") if each.key in keys)
    victim = max(killing.alive, key=lambda node: sum(holders[pid] for pid in node.children()))
    start_time = time.monotonic()
    killing.node(victim)
    await eventually(all_run, within=TIMEOUT_S)
    again = max(each.at for each in scene.ledger.entries("start") if each.key in keys)
    for key in keys:
        scene.let_go(key)
    return again - start_time


async def main(options: Options) -> bool:
    """Run the check and print the results; return whether the limit held."""
    engine = await open_engine(Settings(database_url=options.url), migrate=True)
    kind, workers = options.url.split(":", 1)[0], NODES * PROCESSES
    print(f"{kind}: {options.jobs:,} jobs, at most {options.limit} concurrently, {workers} workers", flush=True)
    print(f"  a kill every {options.every:g} s, lease {options.lease:g} s", flush=True)
    try:
        if await engine.jobs.counts(JobFilter()):
            raise SystemExit("this database contains jobs: use an empty one")
        await engine.limits.set(LIMIT, max_running=options.limit, rate=None)
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            scene = Scene(options.url, Path(folder), engine, stack)
            killing = NodeKiller(scene, options.lease)
            took = await drain(engine, killing, options)
            recovered = await recover(scene, killing, options)

            async def released() -> bool:
                _, state = await engine.limits.named([LIMIT])
                return state[LIMIT].used == 0 and not await engine.jobs.counts(JobFilter())

            with suppress(TimeoutError):
                await eventually(released, within=TIMEOUT_S)
            lost = (await engine.limits.named([LIMIT]))[1][LIMIT].used
            entries = scene.ledger.entries()
        found = attempts_in(entries, killing.killed)
        unfinished = options.jobs - len(
            {each.key for each in entries if each.event == "end" and each.key[:4] == "job-"}
        )
    finally:
        await engine.limits.set(LIMIT, max_running=None, rate=None)
        await engine.aclose()
    bound = options.lease + 2.0
    held = found.concurrent == options.limit and not lost and not unfinished
    print(f"  drained in {took:.0f} s: {killing.workers} worker processes and {killing.nodes} nodes killed")
    print(f"  {found.started:,} attempts started, {found.cut_off} were killed")
    print(f"  at most {found.concurrent} ran concurrently, {lost} slots lost, {unfinished} jobs not finished")
    late = "" if recovered <= bound else ", MISSED"
    print(f"  all of the limit in use {recovered:.2f} s after the last kill (bound {bound:g} s{late})")
    print("  the limit held" if held else "  THE LIMIT DID NOT HOLD", flush=True)
    return held and not late


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="an empty database")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--limit", type=int, default=5, help="jobs that may run concurrently")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two kills")
    parser.add_argument("--lease", type=float, default=3.0, help="seconds")
    parser.add_argument("--sleep", type=float, default=0.005, help="seconds that a job takes")
    arguments = parser.parse_args()
    options = Options(arguments.url, arguments.jobs, arguments.limit, arguments.every, arguments.lease, arguments.sleep)
    sys.exit(0 if asyncio.run(main(options)) else 1)
