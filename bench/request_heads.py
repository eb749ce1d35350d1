"""CPU time that the cache of request heads saves, per request.

    python bench/request_heads.py --url postgresql://… --rounds 9 --requests 4000

Runs `holdfast serve` twice on one database, with and without the cache, and drives both in turn over the same number of
connections. CPU time of the server process is compared, because wall time depends on the disk and on other load.
Requests repeat their head, as curl, most clients and remote workers do, or carry a new `Idempotency-Key` each time, as
`holdfast.client` does. The database must not be used for anything else; it is migrated.
"""

import argparse
import asyncio
import contextlib
import itertools
import os
import secrets
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from service import JOB, ROOT, Server, free_port, is_complete, prepare, request, send

WITHOUT_CACHE = "from holdfast.api.server.request_head import HeadCache; HeadCache.remember = lambda *_: None; "
START = "from holdfast.cli.main import main; main()"

Messages = Callable[[Server], Iterator[bytes]]


def repeated(server: Server) -> Iterator[bytes]:
    """POST requests with the same head each."""
    return itertools.repeat(request(server, "/v1/jobs", JOB))


def with_unique_keys(server: Server) -> Iterator[bytes]:
    """POST requests with a new idempotency key each."""
    message = request(server, "/v1/jobs", JOB)
    for _ in itertools.count():
        key = b"idempotency-key: %b\r\ncontent-type" % secrets.token_hex(8).encode()
        yield message.replace(b"content-type", key, 1)


def health(server: Server) -> Iterator[bytes]:
    """GET requests that do nothing."""
    return itertools.repeat(f"GET /healthz HTTP/1.1\r\nhost: {server.address[0]}\r\naccept: */*\r\n\r\n".encode())


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that all threads of a process have used."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def drive(server: Server, messages: Iterator[bytes], *, connections: int, requests: int) -> None:
    """Send this many requests; each connection sends the next one when it has its response."""
    selector = selectors.DefaultSelector()
    for _ in range(connections):
        sock = socket.create_connection(server.address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(0)
        selector.register(sock, selectors.EVENT_READ, bytearray())
        send(sock, next(messages))
    done = 0
    while done < requests:
        for key, _ in selector.select(1):
            key.data.extend(key.fileobj.recv(262_144))  # type: ignore[union-attr]
            if is_complete(key.data):
                done += 1
                key.data.clear()
                send(key.fileobj, next(messages))  # type: ignore[arg-type]
    for key in list(selector.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]


def start(url: str, program: str) -> tuple[Server, "subprocess.Popen[bytes]"]:
    """Start a node and wait until it listens."""
    server = Server(("127.0.0.1", free_port()), secrets.token_urlsafe(32))
    command = [sys.executable, "-c", program, "serve", "--database-url", url, "--port", str(server.address[1])]
    variables = os.environ | {"HOLDFAST_ADMIN_KEY": server.key, "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(command, env=variables, cwd=ROOT)
    until = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError), socket.create_connection(server.address, 1):
            return server, process
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"holdfast serve does not listen on {server.address}")
        time.sleep(0.05)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="database of both nodes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=4_000, help="requests in each round")
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    asyncio.run(prepare(options.url))
    nodes = {"with": start(options.url, START), "without": start(options.url, WITHOUT_CACHE + START)}
    workloads: dict[str, Messages] = {
        "POST /v1/jobs, same head": repeated,
        "POST /v1/jobs, unique keys": with_unique_keys,
        "GET /healthz": health,
    }
    try:
        for label, messages in workloads.items():
            cost: dict[str, list[float]] = {name: [] for name in nodes}
            for number in range(options.rounds + 1):
                for name in sorted(nodes, reverse=bool(number % 2)):
                    server, process = nodes[name]
                    before = cpu_seconds(process.pid)
                    drive(server, messages(server), connections=options.connections, requests=options.requests)
                    if number:  # the first round warms up
                        cost[name].append((cpu_seconds(process.pid) - before) / options.requests * 1e6)
            cached, parsed = median(cost["with"]), median(cost["without"])
            saved = 100 * (parsed - cached) / parsed
            print(f"{label:28} with {cached:6.1f} µs · without {parsed:6.1f} µs · saved {saved:5.1f} %", flush=True)
    finally:
        for _, process in nodes.values():
            process.terminate()
            process.wait(30)


if __name__ == "__main__":
    main()
