"""Memory and latency of a node under hostile clients.

    python bench/hostile.py [--url DATABASE] [--scale 1.0]

Starts `holdfast serve` and measures its memory and the median latency of `POST /v1/jobs` of another tenant, before and
during each attack: refused batches of 4.7 MB, connections that send oversized trailers, clients that request large
pages and do not read them, and idle connections. Prints the figures and fails if the memory afterwards is above 1.3
times that before, or a median above 3 times that without an attack. `--scale` shortens the attacks.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import resource
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import httpx2

MAX_MEMORY_RATIO = 1.3
MAX_LATENCY_RATIO = 3.0

BATCHES, TRAILERS, SLOW_READERS, IDLE = 1_000, 100, 200, 3_000
BATCH_JOBS, BATCH_PAYLOAD_CHARS = 4_700, 950
TRAILER_BYTES = 2_000_000
PROBE_INTERVAL_S = 0.01
BASELINE_S = 5.0


class Target(NamedTuple):
    """Node under attack."""

    port: int
    key: str
    """API key of the attacker's tenant."""
    scale: float

    def count(self, number: int) -> int:
        """Return a scaled number of requests or connections."""
        return max(1, round(number * self.scale))

    def head(self, method: str, path: str, *headers: str, with_key: bool = True) -> bytes:
        """Return a request head."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
        if with_key:
            lines.append(f"Authorization: Bearer {self.key}")
        return "\r\n".join([*lines, "", ""]).encode()

    async def connect(self, *, receive_buffer: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection; a small receive buffer makes the node keep what the client does not read."""
        sock = socket.socket()
        sock.setblocking(False)  # noqa: FBT003 - positional only
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        return await asyncio.open_connection(sock=sock)


async def refused_batches(target: Target) -> str:
    """Send batches with one invalid job each, on four connections."""
    jobs = [{"type": "send", "payload": "x" * BATCH_PAYLOAD_CHARS} for _ in range(BATCH_JOBS)]
    jobs[-1]["type"] = "-not a name-"
    body = json.dumps({"jobs": jobs}).encode()
    left = target.count(BATCHES)
    statuses: set[bytes] = set()

    async def client() -> None:
        nonlocal left
        reader, writer = await target.connect()
        head = target.head("POST", "/v1/jobs/batch", "Content-Type: application/json", f"Content-Length: {len(body)}")
        while left > 0:
            left -= 1
            writer.write(head + body)
            await writer.drain()
            statuses.add((await read_response(reader))[:12])
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(client())
    return f"{target.count(BATCHES):,} batches of {len(body):,} bytes: {statuses}"


async def oversized_trailers(target: Target) -> str:
    """Send trailers without an end, and without a key, on many connections at once."""
    refused = 0

    async def client() -> None:
        nonlocal refused
        reader, writer = await target.connect()
        writer.write(target.head("POST", "/v1/sign-in", "Transfer-Encoding: chunked", with_key=False) + b"0\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(TRAILER_BYTES // 20_000):
                writer.write(b"x: " + b"y" * 19_995 + b"\r\n")
                await writer.drain()
        with contextlib.suppress(ConnectionError):
            refused += (await reader.read(100)).startswith(b"HTTP/1.1 4")
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(target.count(TRAILERS)):
            group.create_task(client())
    return f"{target.count(TRAILERS)} connections, {refused} read the refusal"


async def slow_readers(target: Target) -> str:
    """Request large pages and read nothing, for ten seconds."""
    connections = []
    for _ in range(target.count(SLOW_READERS)):
        reader, writer = await target.connect(receive_buffer=4_096)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # always a stream
        writer.write(target.head("GET", "/v1/jobs?limit=200"))
        connections.append((reader, writer))
    await asyncio.sleep(10)
    for _, writer in connections:
        writer.transport.abort()
    return f"{len(connections)} clients did not read"


async def idle_connections(target: Target) -> str:
    """Open connections without a key and leave them idle, for ten seconds."""
    connections = [await target.connect() for _ in range(target.count(IDLE))]
    await asyncio.sleep(10)
    closed = sum(reader.at_eof() or reader.exception() is not None for reader, _ in connections)
    for _, writer in connections:
        writer.transport.abort()
    return f"{len(connections):,} connections, {closed:,} closed by the node"


ATTACKS: tuple[Callable[[Target], Awaitable[str]], ...] = (
    refused_batches,
    oversized_trailers,
    slow_readers,
    idle_connections,
)


async def read_response(reader: asyncio.StreamReader) -> bytes:
    """Read one response; return its head."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    await reader.readexactly(int(length.partition(b":")[2]))
    return head


def attack(index: int, target: Target, results: "multiprocessing.Queue[str]") -> None:
    """Run one attack, in its own process."""
    _allow_files()
    results.put(asyncio.run(ATTACKS[index](target)))  # type: ignore[arg-type]  # a coroutine function


class Node:
    """`holdfast serve` in a process of its own."""

    def __init__(self, database_url: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.admin_key = secrets.token_hex(32)
        environment = os.environ | {
            "HOLDFAST_DATABASE_URL": database_url,
            "HOLDFAST_ADMIN_KEY": self.admin_key,
            "HOLDFAST_PORT": str(self.port),
        }
        holdfast = [sys.executable, "-m", "holdfast"]
        subprocess.run([*holdfast, "migrate"], env=environment, check=True, stdout=subprocess.DEVNULL)
        with (folder / "serve.log").open("wb") as log:
            self._process = subprocess.Popen([*holdfast, "serve"], env=environment, stdout=log, stderr=log)

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1_024 for line in status.splitlines() if line.startswith("VmRSS"))

    def stop(self) -> None:
        """Stop the node."""
        self._process.terminate()
        self._process.wait(60)


@contextlib.asynccontextmanager
async def running_node(database_url: str | None) -> AsyncIterator[Node]:
    """Run a node, on SQLite unless a URL is given."""
    with tempfile.TemporaryDirectory() as folder:
        node = Node(database_url or f"sqlite:///{folder}/hostile.db", Path(folder))
        try:
            async with httpx2.AsyncClient(trust_env=False) as client:
                for _ in range(300):
                    with contextlib.suppress(httpx2.TransportError):
                        if (await client.get(f"http://127.0.0.1:{node.port}/readyz")).status_code == 200:
                            break
                    await asyncio.sleep(0.1)
            yield node
        finally:
            node.stop()


class Probe:
    """Another caller, who submits a job again and again and measures how long it takes."""

    def __init__(self, port: int, key: str) -> None:
        self._client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {key}"}, trust_env=False, timeout=60
        )
        self.failures = 0

    async def run(self, until: asyncio.Future[str] | float) -> list[float]:
        """Submit until a future is done, or for some seconds; return the latencies in seconds."""
        latencies = []
        end = time.monotonic() + until if isinstance(until, float) else None
        while time.monotonic() < end if end is not None else not until.done():  # type: ignore[union-attr]
            began = time.perf_counter()
            try:
                response = await self._client.post("/v1/jobs", json={"type": "probe"})
                self.failures += response.status_code != 201
            except httpx2.TransportError:
                self.failures += 1
            latencies.append(time.perf_counter() - began)
            await asyncio.sleep(PROBE_INTERVAL_S)
        return latencies


async def main(database_url: str | None, scale: float) -> int:
    """Run all attacks; return the exit code."""
    async with running_node(database_url) as node:
        admin = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{node.port}",
            headers={"authorization": f"Bearer {node.admin_key}"},
            trust_env=False,
            timeout=60,
        )
        keys = {
            tenant: (
                await admin.post("/v1/keys", json={"tenant": tenant, "name": tenant, "scopes": ["submit", "read"]})
            ).json()["token"]
            for tenant in ("attacker", "other")
        }
        target = Target(node.port, keys["attacker"], scale)
        large = {"type": "large", "payload": ["x" * 60_000] * 4}
        for _ in range(200):
            response = await admin.post("/v1/jobs", json=large, headers={"holdfast-tenant": "attacker"})
            response.raise_for_status()
        probe = Probe(node.port, keys["other"])
        await probe.run(BASELINE_S)
        quiet, before = statistics.median(await probe.run(BASELINE_S)), node.memory()
        print(f"before: {before / 1e6:.0f} MB, p50 of POST /v1/jobs {quiet * 1e3:.1f} ms")
        worst = 0.0
        for index, function in enumerate(ATTACKS):
            results: multiprocessing.Queue[str] = multiprocessing.get_context("spawn").Queue()
            process = multiprocessing.get_context("spawn").Process(target=attack, args=(index, target, results))
            process.start()
            waiting = asyncio.ensure_future(asyncio.to_thread(results.get))
            latencies = await probe.run(waiting)
            process.join()
            p50 = statistics.median(latencies)
            worst = max(worst, p50 / quiet)
            print(f"{function.__name__}: {waiting.result()}")
            print(f"  p50 {p50 * 1e3:.1f} ms ({p50 / quiet:.1f} x), max {max(latencies) * 1e3:.0f} ms", end="")
            print(f" of {len(latencies):,} requests, memory {node.memory() / 1e6:.0f} MB", flush=True)
        await probe.run(2.0)
        after = node.memory()
        await admin.aclose()
    print(
        f"after: {after / 1e6:.0f} MB, {after / before:.2f} x of before (at most {MAX_MEMORY_RATIO}); worst p50 "
        f"{worst:.1f} x (at most {MAX_LATENCY_RATIO}); {probe.failures} failed requests of the other caller"
    )
    return int(after > MAX_MEMORY_RATIO * before or worst > MAX_LATENCY_RATIO or probe.failures > 0)


def _allow_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="database of the node; default: a new SQLite file")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the attacks, such as 0.1")
    options = parser.parse_args()
    sys.exit(asyncio.run(main(options.url, options.scale)))
