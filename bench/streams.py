"""Memory and CPU of a thousand readers of `/v1/events` on one node, idle and under changes.

    .venv/bin/python bench/streams.py [--url postgresql://…] [--readers 1000] [--seconds 20]

The node is a separate process. Readers are sockets of this process: 5 per API key, 50 per tenant.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.engine.engine import Engine
from holdfast.model.access import Scope
from holdfast.model.job import JobSpec

ADMIN = "a-key-for-a-benchmark-and-nothing-else"
PER_KEY, PER_TENANT = 5, 50
_TICK = os.sysconf("SC_CLK_TCK")
_HEAD = "GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n\r\n"


def rss(pid: int) -> float:
    """Resident memory in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmRSS")))


def cpu(pid: int) -> float:
    """Seconds of processor time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


class Readers:
    """Open streams, and the number of their events."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.events = 0

    async def open(self, key: str) -> None:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=4_096)
        writer.write(_HEAD.format(path="/v1/events", key=key).encode())
        first = await reader.readline()
        if b" 200 " not in first:
            raise RuntimeError(f"a stream was refused: {first!r}")
        self._writers.append(writer)
        self._tasks.append(asyncio.create_task(self._read(reader)))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while chunk := await reader.read(65_536):
            self.events += chunk.count(b"event: job")

    async def close(self) -> None:
        for writer in self._writers:
            writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def latencies(host: str, port: int, seconds: float) -> list[float]:
    """Return the latencies of sequential `GET /v1/jobs?limit=1` in milliseconds."""
    reader, writer = await asyncio.open_connection(host, port)
    found = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        start_time = time.perf_counter()
        writer.write(_HEAD.format(path="/v1/jobs?limit=1", key=ADMIN).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        await reader.readexactly(size)
        found.append((time.perf_counter() - start_time) * 1_000)
        await asyncio.sleep(0.01)
    writer.close()
    return found


async def keep_changing(engine: Engine, tenants: int, stop: asyncio.Event) -> int:
    """Submit a hundred jobs per second, of all tenants in turn; return how many."""
    submitted = 0
    while not stop.is_set():
        await engine.jobs.submit(JobSpec("bench.noop", tenant=f"t{submitted % tenants}", queue="unserved"))
        submitted += 1
        await asyncio.sleep(0.01)
    return submitted


async def main(url: str, readers: int, seconds: float) -> None:
    """Measure and print the results as JSON."""
    settings = Settings(database_url=url)
    engine = await open_engine(settings, migrate=True)
    tenants = -(-readers // PER_TENANT)
    keys = []
    for number in range(-(-readers // PER_KEY)):
        tenant = f"t{number * PER_KEY // PER_TENANT}"
        keys.append((await engine.access.create_key(tenant, "bench", frozenset({Scope.READ})))[1])
    environment = {**os.environ, "HOLDFAST_DATABASE_URL": url, "HOLDFAST_ADMIN_KEY": ADMIN, "HOLDFAST_PORT": "0"}
    node = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", "serve", env=environment, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        if node.stdout is None:
            raise RuntimeError("the node has no output")
        line = ""
        while "listening on" not in line:
            line = (await node.stdout.readline()).decode()
            if not line:
                raise RuntimeError("the node did not start")
        at = urlsplit(next(word for word in line.replace(";", " ").split() if word.startswith("http://")))
        host, port = at.hostname or "127.0.0.1", at.port or 80
        before, quiet = rss(node.pid), await latencies(host, port, seconds / 4)
        streams = Readers(host, port)
        start_time = time.perf_counter()
        for number in range(readers):
            await streams.open(keys[number // PER_KEY])
        opened = time.perf_counter() - start_time
        await asyncio.sleep(2)
        idle_from = cpu(node.pid)
        await asyncio.sleep(seconds)
        idle = (cpu(node.pid) - idle_from) / seconds
        crowded, held = await latencies(host, port, seconds / 4), rss(node.pid)
        stop = asyncio.Event()
        changes = asyncio.create_task(keep_changing(engine, tenants, stop))
        busy_from = cpu(node.pid)
        await asyncio.sleep(seconds)
        busy = (cpu(node.pid) - busy_from) / seconds
        stop.set()
        submitted = await changes
        await asyncio.sleep(2)
        result = {
            "readers": readers,
            "opened_in_s": round(opened, 2),
            "kib_each": round((held - before) / readers, 1),
            "cpu_idle_percent": round(100 * idle, 1),
            "p99_ms_without_readers": round(statistics.quantiles(quiet, n=100)[98], 2),
            "p99_ms_with_readers": round(statistics.quantiles(crowded, n=100)[98], 2),
            "cpu_busy_percent": round(100 * busy, 1),
            "jobs_a_second": round(submitted / seconds, 1),
            "events_received": streams.events,
            "events_expected": submitted * PER_TENANT,
        }
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
        await streams.close()
    finally:
        node.terminate()
        await node.wait()
        await engine.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default=None)
    parser.add_argument("--readers", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(arguments.url or f"sqlite:///{folder}/bench.db", arguments.readers, arguments.seconds))
