"""Overhead of the worker: `holdfast work` compared to a bare loop of claims and settles.

    python bench/worker.py                                   # on private servers and a new SQLite file
    python bench/worker.py --url postgresql://… --jobs 50000 --rounds 3

Each round drains the same number of jobs that do nothing with the bare loop, with one worker process and with two.
Results are medians over the rounds, from the first claim to the last settle by the clock of the database. Use an empty
database that nothing else uses; it is emptied after each drain. Exit code 1 if a target is missed.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.bench import measures, suite  # noqa: E402
from holdfast.cli.event_loop import run  # noqa: E402
from holdfast.config import load  # noqa: E402
from holdfast.store.console import Console, open_console  # noqa: E402
from tests.support.servers import Server, running  # noqa: E402

TARGET = 0.75
_LEFT = "SELECT 1 FROM holdfast_live LIMIT 1"
_SPAN = "SELECT count(*), min(started_at), max(finished_at) FROM holdfast_history"


class Contender(NamedTuple):
    """Variant of draining; 0 processes for the bare loop."""

    name: str
    processes: int


BARE = Contender("bare loop", 0)
WORKERS = (Contender("1 process", 1), Contender("2 processes", 2))


def main() -> int:
    """Measure and print the results; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", action="append", default=[], help="empty database; may be repeated")
    parser.add_argument("--jobs", type=int, default=30_000, help="jobs per drain")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--slots", type=int, default=50, help="slots per worker process")
    options = parser.parse_args()
    met = True
    with ExitStack() as stack:
        for url in options.url or _own_databases(stack):
            met &= run(measure(url, options.jobs, options.rounds, options.slots))
    return 0 if met else 1


def _own_databases(stack: ExitStack) -> Sequence[str]:
    servers = stack.enter_context(running(["postgres", "mysql"]))
    folder = stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp" if Path("/var/tmp").is_dir() else None))
    return [*(each.url for each in servers.values() if isinstance(each, Server)), f"sqlite:///{folder}/bench.db"]


async def measure(url: str, jobs: int, rounds: int, slots: int) -> bool:
    """Run the rounds on one database; return whether the targets are met."""
    found: dict[Contender, list[float]] = {BARE: [], **{each: [] for each in WORKERS}}
    async with suite.open_database(suite.with_database(load(), url)) as database:
        console = await open_console(url)
        print(f"{await database.server()}: {jobs:,} jobs, {rounds} rounds", flush=True)
        for _ in range(rounds):
            for contender, rates in found.items():
                await database.add_backlog(jobs, tenants=1, progress=measures.no_progress)
                if contender is BARE:
                    async with database.in_service():
                        await measures.drain(database.engine, jobs, progress=measures.no_progress)
                else:
                    await _work(console, url, contender.processes, slots)
                rates.append(await _rate(console))
                await database.wipe()
        await console.aclose()
    baseline = median(found[BARE])
    print(f"  {BARE.name:12} {baseline:8,.0f} jobs/s")
    met = True
    for each in WORKERS:
        ratio = median(found[each]) / baseline
        met &= ratio >= TARGET
        print(f"  {each.name:12} {median(found[each]):8,.0f} jobs/s   ratio {ratio:.2f} (target {TARGET}, "
              f"{'met' if ratio >= TARGET else 'MISSED'})", flush=True)  # fmt: skip
    return met


async def _work(console: Console, url: str, processes: int, slots: int) -> None:
    """Drain with a node, and stop it gracefully."""
    variables = {**os.environ, "HOLDFAST_DATABASE_URL": url, "PYTHONPATH": os.pathsep.join([str(ROOT / "src")])}
    node = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs meanwhile
        [sys.executable, "-m", "holdfast", "work", "noop:app", "--queues", f"bench:{slots}",
         "--processes", str(processes)],
        cwd=ROOT / "bench", env=variables, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        while await console.rows(_LEFT):
            if node.poll() is not None:
                raise RuntimeError(f"the worker ended with code {node.returncode}")
            await asyncio.sleep(0.5)
        node.send_signal(signal.SIGTERM)
        await asyncio.to_thread(node.wait)
    finally:
        if node.poll() is None:
            node.kill()
            node.wait()


async def _rate(console: Console) -> float:
    ((done, first, last),) = await console.rows(_SPAN)
    return float(done) / ((int(last) - int(first)) / 1e6)


if __name__ == "__main__":
    sys.exit(main())
