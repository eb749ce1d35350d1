"""Raw HTTP/1.1 over a socket: for tests that decide each byte that a client sends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from holdfast.api.server.server import bind, serve
from holdfast.api.server.timeouts import DEFAULT_LIMITS, ServerLimits
from tests.e2e.api.conftest import ADMIN, Served
from tests.support.eventually import TIMEOUT_S

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

AUTHORIZATION = f"Authorization: Bearer {ADMIN}\r\n".encode()
GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
JOB = b'{"type": "send"}'

Response = tuple[int, dict[str, str], bytes]
"""Status, headers by lower-case name, body."""


def post(body: bytes, *headers: bytes, length: bool = True, path: bytes = b"/v1/jobs") -> bytes:
    """Return a POST request of an administrator; `length`: with its Content-Length."""
    head = [b"POST " + path + b" HTTP/1.1", b"Host: x", b"Content-Type: application/json", AUTHORIZATION.strip()]
    head += headers
    if length:
        head.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(head) + b"\r\n\r\n" + body


class RawConnection:
    """Client connection that sends and receives bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()

    async def response(self) -> Response | None:
        """Return the next response; None if the server closed the connection instead."""
        async with asyncio.timeout(TIMEOUT_S):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
            length = int(headers.get("content-length", 0))
            return int(first.split()[1]), headers, await self.reader.readexactly(length)

    async def rest(self) -> bytes:
        """Return everything up to the end of the connection."""
        async with asyncio.timeout(TIMEOUT_S):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def statuses(self) -> list[int]:
        """Return the statuses of all responses up to the end of the connection."""
        statuses = []
        while (response := await self.response()) is not None:
            statuses.append(response[0])
        return statuses


class RunningServer:
    """HTTP server on a free port of 127.0.0.1."""

    def __init__(self, port: int, stop: asyncio.Event, serving: asyncio.Task[None]) -> None:
        self.port = port
        self.stop = stop.set
        self.ended = serving
        """Task that ends when the server has shut down."""
        self._connections: list[RawConnection] = []

    async def connect(self, tls: ssl.SSLContext | None = None) -> RawConnection:
        """Open a connection, with TLS for the name `localhost` if a context is given."""
        name = None if tls is None else "localhost"
        streams = await asyncio.open_connection("127.0.0.1", self.port, ssl=tls, server_hostname=name)
        self._connections.append(RawConnection(*streams))
        return self._connections[-1]

    def close_connections(self) -> None:
        for connection in self._connections:
            connection.writer.transport.abort()  # a TLS close would wait for the server


@contextlib.asynccontextmanager
async def running_server(
    served: Served, limits: ServerLimits = DEFAULT_LIMITS, tls: ssl.SSLContext | None = None
) -> AsyncIterator[RunningServer]:
    """Run the service on a socket within this block."""
    listening = bind("127.0.0.1", 0)
    port = listening.getsockname()[1]
    ready, stop = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(serve(served.api, listening, stop=stop, ready=ready.set, limits=limits, tls=tls))
    await ready.wait()
    server = RunningServer(port, stop, serving)
    try:
        yield server
    finally:
        server.close_connections()
        stop.set()
        await serving
