"""What more worker processes bring: jobs that sleep 50 ms, on 1, 2, 4 and 8 of them.

    python bench/scaling.py                                    # on a private PostgreSQL
    python bench/scaling.py --url mysql://… --seconds 3 --slots 4

Each number of processes drains as many jobs as it should manage in the given time, submitted when all have registered;
the rate is from the first claim to the last settle, by the database's clock. Efficiency is the rate of N processes
against N times the rate of one, in the same run. The database must be an empty one of its own. Exit code 1 below the
target.
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
_AT_ONCE = 1_000
_REGISTERED = "SELECT count(*) FROM holdfast_workers"
_LEFT = "SELECT 1 FROM holdfast_live LIMIT 1"
_SPAN = "SELECT count(*), min(started_at), max(finished_at) FROM holdfast_history"


class Asked(msgspec.Struct, frozen=True):
    """What is to be measured."""

    processes: tuple[int, ...]
    seconds: float
    slots: int
    rounds: int


def main() -> int:
    """Measure and tell; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an empty database; a private PostgreSQL if left out")
    parser.add_argument("--processes", default="1,2,4,8", help="numbers to try; the least is the measure of the others")
    parser.add_argument("--seconds", type=float, default=10.0, help="of work in each drain, if it were linear")
    parser.add_argument("--slots", type=int, default=10, help="of each worker process")
    parser.add_argument("--rounds", type=int, default=1, help="figures are medians over them")
    given = parser.parse_args()
    asked = Asked(tuple(map(int, given.processes.split(","))), given.seconds, given.slots, given.rounds)
    with ExitStack() as stack:
        rates = run(measure(given.url or _own_database(stack), asked))
    return 0 if tell(rates) else 1


def _own_database(stack: ExitStack) -> str:
    server = stack.enter_context(running(["postgres"]))["postgres"]
    if not isinstance(server, Server):
        raise SystemExit(f"no PostgreSQL is to be had ({server}): name a database with --url")
    return server.url


async def measure(url: str, asked: Asked) -> dict[int, float]:
    """Jobs a second of each number of processes."""
    found: dict[int, list[float]] = {number: [] for number in asked.processes}
    async with suite.open_database(suite.with_database(load(), url)) as database:
        console = await open_console(url)
        load_now = os.getloadavg()[0]
        print(
            f"{await ground.server()}: jobs of {NAP * 1_000:.0f} ms, {asked.slots} slots a process; "
            f"{os.cpu_count()} processors, load {load_now:.0f}",
            flush=True,
        )
        for _ in range(asked.rounds):
            for number, rates in found.items():
                await _work(database, console, url, number, asked)
                ((done, first, last),) = await console.rows(_SPAN)
                rates.append(float(done) / ((int(last) - int(first)) / 1e6))
                await database.wipe()
        await console.aclose()
    return {number: median(rates) for number, rates in found.items()}


async def _work(database: BenchDatabase, console: Console, url: str, processes: int, asked: Asked) -> None:
    """Have a node of so many processes drain its share, and end it in good order."""
    jobs = round(processes * asked.slots * asked.seconds / NAP)
    variables = {**os.environ, "HOLDFAST_DATABASE_URL": url, "PYTHONPATH": str(ROOT / "src")}
    node = subprocess.Popen(  # noqa: ASYNC220 - nothing else is done meanwhile
        [sys.executable, "-m", "holdfast", "work", "naps:app", "--queues", f"naps:{asked.slots}",
         "--processes", str(processes)],
        cwd=ROOT / "bench", env=variables, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        await _until(console, node, _REGISTERED, lambda rows: int(rows[0][0]) >= processes)
        spec = JobSpec(type="bench.nap", queue="naps", payload={"seconds": NAP})
        for begin in range(0, jobs, _AT_ONCE):
            await database.engine.jobs.submit_many([spec] * min(_AT_ONCE, jobs - begin))
        await _until(console, node, _LEFT, lambda rows: not rows)
        node.send_signal(signal.SIGTERM)
        await asyncio.to_thread(node.wait)
    finally:
        if node.poll() is None:
            node.kill()
            node.wait()


async def _until(
    console: Console, node: "subprocess.Popen[bytes]", statement: str, true: Callable[[Rows], bool]
) -> None:
    while not true(await console.rows(statement)):
        if node.poll() is not None:
            raise RuntimeError(f"the worker ended with code {node.returncode}")
        await asyncio.sleep(0.2)


def tell(rates: dict[int, float]) -> bool:
    """The figures and their plot; whether the target is met by all."""
    first = min(rates)
    linear = {number: number / first * rates[first] for number in rates}
    most = max(*linear.values(), *rates.values())
    met = True
    print(f"\n  {'processes':>9}  {'jobs/s':>8}  {'of linear':>9}   █ measured  │ linear")
    for number, rate in rates.items():
        ratio = rate / linear[number]
        met &= ratio >= TARGET
        bar = "█" * round(WIDTH * rate / most)
        mark = round(WIDTH * linear[number] / most)
        print(f"  {number:>9}  {rate:>8,.0f}  {ratio:>9.2f}   {bar:<{mark}}│")
    print(f"\n  target {TARGET}: {'met' if met else 'MISSED'}", flush=True)
    return met


if __name__ == "__main__":
    sys.exit(main())
