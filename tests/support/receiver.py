"""Receiver of webhooks with configurable behaviour, down to raw bytes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Self

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class ReceivedRequest(NamedTuple):
    """Request as it was received."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the value of a header, which must not occur twice."""
        found = [value for each, value in self.headers if each.lower() == name.lower()]
        assert len(found) <= 1, f"{name} came {len(found)} times"
        return found[0] if found else None


Behaviour = Callable[[ReceivedRequest, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answers(status: int, *headers: str, body: bytes = b"") -> Behaviour:
    """Respond with this status."""
    head = "".join(f"{each}\r\n" for each in headers)

    async def respond(_got: ReceivedRequest, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} Test\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body)

    return respond


async def hangs(_got: ReceivedRequest, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Never respond."""
    await reader.read()


async def resets(_got: ReceivedRequest, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reset the connection."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def drips(_got: ReceivedRequest, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond with an endless head."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-a: b\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


def pours(megabytes: int) -> Behaviour:
    """Respond with a very long body."""

    async def pour(_got: ReceivedRequest, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {megabytes << 20}\r\n\r\n".encode())
        for _ in range(megabytes):
            writer.write(b"x" * (1 << 20))
            await writer.drain()

    return pour


class Receiver:
    """Server on a free port; `behave` handles each request."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self.behave: Behaviour = answers(200, body=b"ok")
        self.connections = 0
        self.got: list[ReceivedRequest] = []
        self.sent = 0
        self._server: asyncio.Server
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def port(self) -> int:
        """Port of the server."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """URL for webhooks."""
        return f"http://{self.host}:{self.port}/hook"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                got = await _request(reader)
                self.got.append(got)
                await self.behave(got, reader, writer)
                await writer.drain()
        writer.close()
        self._writers.discard(writer)


async def _request(reader: asyncio.StreamReader) -> ReceivedRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (each.partition(":") for each in rest)]
    length = int(next((value for name, value in headers if name.lower() == "content-length"), "0"))
    return ReceivedRequest(line, headers, await reader.readexactly(length))
