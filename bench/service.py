"""Cost of a durable submission over HTTP, compared to a route that does nothing.

    python bench/service.py --url postgresql://… --rounds 3 --seconds 5

Runs two servers with one process each: a bare Starlette route on uvicorn that decodes a job with msgspec and responds,
and `holdfast serve`, where a response means committed. The same client drives both in turn over the same number of
connections. Then it compares batches over HTTP with bulk inserts through the engine. Use a database that nothing else
uses; it is migrated. Exit code 1 if a target is missed.
"""

import argparse
import asyncio
import contextlib
import os
import secrets
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.compose import open_engine  # noqa: E402
from holdfast.config import Settings  # noqa: E402
from holdfast.model.job import JobSpec  # noqa: E402

SINGLES_TARGET, BATCHES_TARGET = 0.6, 0.5
PAYLOAD = {"user": 42, "text": "x" * 160}
JOB = msgspec.json.encode({"type": "bench.noop", "payload": PAYLOAD})


class Server(NamedTuple):
    """Server under test."""

    address: tuple[str, int]
    key: str


@contextlib.contextmanager
def running(command: list[str], server: Server) -> Iterator[Server]:
    """Run the server within the block."""
    process = subprocess.Popen(command, env=os.environ | {"HOLDFAST_ADMIN_KEY": server.key}, cwd=ROOT)
    try:
        until = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), socket.create_connection(server.address, 1):
                break
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{command[:3]} does not respond on {server.address}")
            time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def request(server: Server, path: str, body: bytes) -> bytes:
    """Return a request as bytes."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: {server.address[0]}\r\nauthorization: Bearer {server.key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def drive(server: Server, message: bytes, *, connections: int, seconds: float) -> float:
    """Return requests per second; each connection sends the next after the response."""
    selector = selectors.DefaultSelector()
    socks = [socket.create_connection(server.address) for _ in range(connections)]
    for sock in socks:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(0)
        selector.register(sock, selectors.EVENT_READ, bytearray())
        send(sock, message)
    done = 0
    start_time = time.perf_counter()
    while (now := time.perf_counter()) - start_time < seconds:
        for key, _ in selector.select(1):
            sock, got = key.fileobj, key.data
            got += sock.recv(262_144)  # type: ignore[union-attr]
            if is_complete(got):
                done += 1
                got.clear()
                send(sock, message)  # type: ignore[arg-type]
    for sock in socks:
        sock.close()
    return done / (now - start_time)


def send(sock: socket.socket, message: bytes) -> None:
    """Send the whole message."""
    remaining = memoryview(message)
    while remaining:
        try:
            remaining = remaining[sock.send(remaining) :]
        except BlockingIOError:
            time.sleep(0)


def is_complete(got: bytearray) -> bool:
    """Tell if the response is complete; exit on any status but success."""
    head = got.find(b"\r\n\r\n")
    if head < 0:
        return False
    if not got.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
        raise SystemExit(f"refused: {bytes(got[:600]).decode(errors='replace')}")
    lower = got[:head].lower()
    at = lower.index(b"content-length:") + 15
    length = int(lower[at : lower.find(b"\r\n", at) if lower.find(b"\r\n", at) > 0 else head])
    return len(got) >= head + 4 + length


def bare(port: int) -> list[str]:
    """Return the command of the baseline server."""
    return [
        sys.executable, "-m", "uvicorn", "bare_http:app", "--app-dir", str(ROOT / "bench"), "--port", str(port),
        "--no-access-log", "--log-level", "warning", "--loop", "uvloop", "--http", "httptools",
    ]  # fmt: skip


def ours(url: str, port: int) -> list[str]:
    """Return the command of the service."""
    return [sys.executable, "-m", "holdfast", "serve", "--database-url", url, "--port", str(port)]


async def bulk(url: str, size: int, seconds: float) -> float:
    """Return jobs per second of bulk inserts, with two batches in flight."""
    engine = await open_engine(Settings(database_url=url))
    specs = [JobSpec(type="bench.noop", payload=PAYLOAD) for _ in range(size)]
    done = 0
    start_time = time.perf_counter()

    async def submit() -> None:
        nonlocal done
        while time.perf_counter() - start_time < seconds:
            await engine.jobs.submit_many(specs)
            done += size

    await asyncio.gather(submit(), submit())
    took = time.perf_counter() - start_time
    await engine.aclose()
    return done / took


async def prepare(url: str) -> None:
    """Migrate the database."""
    engine = await open_engine(Settings(database_url=url), migrate=True)
    await engine.aclose()


def main() -> int:
    """Measure and print the results; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="database that only the service uses")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--batch", type=int, default=1_000)
    options = parser.parse_args()
    asyncio.run(prepare(options.url))
    singles, batches = [], []
    bare_server = Server(("127.0.0.1", free_port()), "-")
    our_server = Server(("127.0.0.1", free_port()), secrets.token_urlsafe(32))
    batch = msgspec.json.encode({"jobs": [{"type": "bench.noop", "payload": PAYLOAD}] * options.batch})
    with (
        running(bare(bare_server.address[1]), bare_server),
        running(ours(options.url, our_server.address[1]), our_server),
    ):
        for _ in range(options.rounds):
            baseline = drive(
                bare_server, request(bare_server, "/v1/jobs", JOB),
                connections=options.connections, seconds=options.seconds,
            )  # fmt: skip
            durable = drive(
                our_server, request(our_server, "/v1/jobs", JOB),
                connections=options.connections, seconds=options.seconds,
            )  # fmt: skip
            store = asyncio.run(bulk(options.url, options.batch, options.seconds))
            ingest = options.batch * drive(
                our_server, request(our_server, "/v1/jobs/batch", batch), connections=2, seconds=options.seconds
            )
            singles.append(durable / baseline)
            batches.append(ingest / store)
            print(
                f"route that does nothing {baseline:,.0f}/s · POST /v1/jobs {durable:,.0f}/s ({singles[-1]:.2f}) · "
                f"store in bulk {store:,.0f} jobs/s · POST /v1/jobs/batch {ingest:,.0f} jobs/s ({batches[-1]:.2f})"
            )
    print(f"POST /v1/jobs over a route that does nothing: {median(singles):.2f} (target {SINGLES_TARGET})")
    print(f"POST /v1/jobs/batch over the store in bulk: {median(batches):.2f} (target {BATCHES_TARGET})")
    return 0 if median(singles) >= SINGLES_TARGET and median(batches) >= BATCHES_TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
