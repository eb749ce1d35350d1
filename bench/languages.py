"""Workers in Go and TypeScript: throughput beside a Python worker over HTTP, and effects under kills.

    python bench/languages.py                                # on a private PostgreSQL
    python bench/languages.py --url postgresql://… --jobs 20000 --noops 10000

First, each language drains jobs that do nothing with two worker processes of 50 slots, through one node. Then two Go
and two TypeScript workers run jobs with one effect each, and one of them is killed with SIGKILL every two seconds and
started again. The effect is a row in the database: a job that the handler submits in a step, under its idempotency key.
Needs Go and Node. Use an empty database. Exit code 1 if a job is lost, or an effect is missing or doubled.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.cli.event_loop import run  # noqa: E402
from holdfast.client import Client  # noqa: E402
from holdfast.store.console import open_console  # noqa: E402
from tests.support.databases import migrate  # noqa: E402
from tests.support.servers import Server, running  # noqa: E402
from tests.support.services import Service  # noqa: E402
from tests.support.toolchains import GO_CLIENT, build_go, build_typescript  # noqa: E402

KEY = "an-admin-key-for-benchmarks-0815"
BATCH_SIZE = 1_000
_UNFINISHED = "SELECT count(*) FROM holdfast_live WHERE queue = 'bench'"
_EFFECTS = "SELECT count(*) FROM holdfast_live WHERE queue = 'effects'"


class Workers:
    """Worker processes that can be killed and started again."""

    def __init__(self, url: str, commands: list[list[str]]) -> None:
        self._environment = {
            **os.environ,
            "HOLDFAST_API_URL": url,
            "HOLDFAST_API_KEY": KEY,
            "PYTHONPATH": str(ROOT / "src"),
        }
        self._commands = commands
        self._processes = [self._start(command) for command in commands]

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(command, cwd=ROOT / "bench", env=self._environment, stderr=subprocess.DEVNULL)

    def replace(self, index: int) -> None:
        """Kill a worker and start another."""
        self._processes[index].kill()
        self._processes[index].wait()
        self._processes[index] = self._start(self._commands[index])

    def stop(self) -> None:
        """Drain all workers."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait(60)


def main() -> int:
    """Run and print the results; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="empty database; by default a private PostgreSQL")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs with an effect")
    parser.add_argument("--noops", type=int, default=10_000, help="jobs that do nothing, for each language")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        go = [str(build_go("./bench", GO_CLIENT, folder / "go-worker"))]
        typescript = ["node", str(build_typescript() / "build" / "bench" / "worker.js")]
        database = options.url or _own_database(stack)
        run(migrate(database))
        service = Service(database, folder, {"HOLDFAST_ADMIN_KEY": KEY})
        service.start()
        stack.callback(service.stop)
        with Client(service.url, KEY) as client:
            python = [sys.executable, "-m", "holdfast", "work", "noop:app", "--queues", "bench:50", "--processes", "2"]
            for name, commands in {"Python": [python], "Go": [go] * 2, "TypeScript": [typescript] * 2}.items():
                rate = _drain(client, database, service.url, name, commands, count=options.noops)
                print(f"{name:10} {rate:8,.0f} jobs/s   ({options.noops:,} jobs that do nothing)", flush=True)
            correct = _under_kills(client, database, service.url, [go, go, typescript, typescript], options)
    return 0 if correct else 1


def _own_database(stack: ExitStack) -> str:
    server = stack.enter_context(running(["postgres"]))["postgres"]
    if not isinstance(server, Server):
        raise SystemExit(f"no PostgreSQL: {server.reason}")
    return server.url


def _submit(client: Client, kind: str, tag: str, count: int) -> None:
    for start in range(0, count, BATCH_SIZE):
        jobs = [
            {"type": kind, "payload": {"i": i, "pad": ""}, "queue": "bench", "tags": [tag], "max_attempts": 100}
            for i in range(start, min(start + BATCH_SIZE, count))
        ]
        client.submit_many(jobs)


def _count(database: str, query: str) -> int:
    async def count() -> int:
        console = await open_console(database)
        try:
            ((found,),) = await console.rows(query)
            return int(found)
        finally:
            await console.aclose()

    return run(count())


def _drain(client: Client, database: str, url: str, tag: str, commands: list[list[str]], *, count: int) -> float:
    """Drain jobs that do nothing; return the jobs per second from the first start to the last end."""
    _submit(client, "bench.noop", tag, count)
    workers = Workers(url, commands)
    try:
        while _count(database, _UNFINISHED):
            time.sleep(0.5)
    finally:
        workers.stop()
    jobs = list(client.list(tag=tag, status="succeeded"))
    assert len(jobs) == count, f"{len(jobs)} of {count} jobs succeeded"
    first = min(job.started_at for job in jobs)
    last = max(job.finished_at for job in jobs)
    return count / _seconds(first, last)


def _seconds(first: datetime, last: datetime) -> float:
    return (last - first).total_seconds()


def _under_kills(
    client: Client, database: str, url: str, commands: list[list[str]], options: argparse.Namespace
) -> bool:
    """Run jobs with an effect while workers are killed; return whether every effect happened once."""
    draw = random.Random(options.seed)
    _submit(client, "bench.effect", "effect", options.jobs)
    began, kills, next_kill = time.monotonic(), 0, time.monotonic() + 2
    workers = Workers(url, commands)
    try:
        while _count(database, _UNFINISHED):
            time.sleep(max(0.0, min(0.5, next_kill - time.monotonic())))
            if time.monotonic() >= next_kill:
                workers.replace(draw.randrange(len(commands)))
                kills, next_kill = kills + 1, time.monotonic() + 2
    finally:
        workers.stop()
    took = time.monotonic() - began
    jobs = list(client.list(tag="effect", status="succeeded"))
    rows, results = _count(database, _EFFECTS), {job.result for job in jobs}
    effects = {str(job.id) for job in client.list(queue="effects")}
    lost = options.jobs - len(jobs)
    doubled = rows - len(results)
    print(
        f"{options.jobs:,} jobs, 2 Go and 2 TypeScript workers, {kills} kills, {took:.0f} s "
        f"({options.jobs / took:,.0f} jobs/s): {lost} lost, {rows:,} effects, {doubled} doubled, "
        f"{len(results - effects)} missing, {sum(job.attempts for job in jobs) - len(jobs):,} attempts repeated",
        flush=True,
    )
    return lost == 0 and doubled == 0 and results == effects


if __name__ == "__main__":
    sys.exit(main())
