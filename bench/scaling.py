"""Scaling with worker processes: jobs that sleep 50 ms, on 1, 2, 4 and 8 processes.

    python bench/scaling.py                                    # on a private PostgreSQL
    python bench/scaling.py --url mysql://… --seconds 3 --slots 4

Each number of processes drains as many jobs as linear scaling would finish in the given time, submitted when all are
registered; the rate is from the first claim to the last settle, by the clock of the database. Efficiency is the rate
of N processes divided by N times the rate of one, in the same run. Use an empty database that nothing else uses. Exit
code 1 below the target.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.bench import suite  # noqa: E402
from holdfast.bench.dataset import BenchDatabase  # noqa: E402
from holdfast.cli.event_loop import run  # noqa: E402
from holdfast.config import load  # noqa: E402
from holdfast.model.job import JobSpec  # noqa: E402
from holdfast.store.console import Console, Rows, open_console  # noqa: E402
from tests.support.servers import Server, running  # noqa: E402

TARGET = 0.85
NAP = 0.05
WIDTH = 50
_BATCH_SIZE = 1_000
_REGISTERED = "SELECT count(*) FROM holdfast_workers"
_LEFT = "SELECT 1 FROM holdfast_live LIMIT 1"
_SPAN = "SELECT count(*), min(started_at), max(finished_at) FROM holdfast_history"


class Options(msgspec.Struct, frozen=True):
    """Options of the command line."""

    processes: tuple[int, ...]
    seconds: float
    slots: int
    rounds: int


def main() -> int:
    """Measure and print the results; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an empty database; a private PostgreSQL if left out")
    parser.add_argument("--processes", default="1,2,4,8", help="numbers to try; the smallest is the baseline")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each drain with linear scaling")
    parser.add_argument("--slots", type=int, default=10, help="slots per worker process")
    parser.add_argument("--rounds", type=int, default=1, help="results are medians over the rounds")
    arguments = parser.parse_args()
    options = Options(
        tuple(map(int, arguments.processes.split(","))), arguments.seconds, arguments.slots, arguments.rounds
    )
    with ExitStack() as stack:
        rates = run(measure(arguments.url or _own_database(stack), options))
    return 0 if report(rates) else 1


def _own_database(stack: ExitStack) -> str:
    server = stack.enter_context(running(["postgres"]))["postgres"]
    if not isinstance(server, Server):
        raise SystemExit(f"no PostgreSQL available ({server}): name a database with --url")
    return server.url


async def measure(url: str, options: Options) -> dict[int, float]:
    """Return the jobs per second of each number of processes."""
    found: dict[int, list[float]] = {number: [] for number in options.processes}
    async with suite.open_database(suite.with_database(load(), url)) as database:
        console = await open_console(url)
        load_now = os.getloadavg()[0]
        print(
            f"{await database.server()}: jobs of {NAP * 1_000:.0f} ms, {options.slots} slots a process; "
            f"{os.cpu_count()} processors, load {load_now:.0f}",
            flush=True,
        )
        for _ in range(options.rounds):
            for number, rates in found.items():
                await _work(database, console, url, number, options)
                ((done, first, last),) = await console.rows(_SPAN)
                rates.append(float(done) / ((int(last) - int(first)) / 1e6))
                await database.wipe()
        await console.aclose()
    return {number: median(rates) for number, rates in found.items()}


async def _work(database: BenchDatabase, console: Console, url: str, processes: int, options: Options) -> None:
    """Drain jobs with a node of this many processes, and stop it gracefully."""
    jobs = round(processes * options.slots * options.seconds / NAP)
    variables = {**os.environ, "HOLDFAST_DATABASE_URL": url, "PYTHONPATH": str(ROOT / "src")}
    node = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs meanwhile
        [sys.executable, "-m", "holdfast", "work", "naps:app", "--queues", f"naps:{options.slots}",
         "--processes", str(processes)],
        cwd=ROOT / "bench", env=variables, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        await _until(console, node, _REGISTERED, lambda rows: int(rows[0][0]) >= processes)
        spec = JobSpec(type="bench.nap", queue="naps", payload={"seconds": NAP})
        for begin in range(0, jobs, _BATCH_SIZE):
            await database.engine.jobs.submit_many([spec] * min(_BATCH_SIZE, jobs - begin))
        await _until(console, node, _LEFT, lambda rows: not rows)
        node.send_signal(signal.SIGTERM)
        await asyncio.to_thread(node.wait)
    finally:
        if node.poll() is None:
            node.kill()
            node.wait()


async def _until(
    console: Console, node: "subprocess.Popen[bytes]", statement: str, condition: Callable[[Rows], bool]
) -> None:
    while not condition(await console.rows(statement)):
        if node.poll() is not None:
            raise RuntimeError(f"the worker ended with code {node.returncode}")
        await asyncio.sleep(0.2)


def report(rates: dict[int, float]) -> bool:
    """Print the results as a plot; return whether all meet the target."""
    first = min(rates)
    linear = {number: number / first * rates[first] for number in rates}
    largest = max(*linear.values(), *rates.values())
    met = True
    print(f"\n  {'processes':>9}  {'jobs/s':>8}  {'of linear':>9}   █ measured  │ linear")
    for number, rate in rates.items():
        ratio = rate / linear[number]
        met &= ratio >= TARGET
        bar = "█" * round(WIDTH * rate / largest)
        mark = round(WIDTH * linear[number] / largest)
        print(f"  {number:>9}  {rate:>8,.0f}  {ratio:>9.2f}   {bar:<{mark}}│")
    print(f"\n  target {TARGET}: {'met' if met else 'MISSED'}", flush=True)
    return met


if __name__ == "__main__":
    sys.exit(main())
