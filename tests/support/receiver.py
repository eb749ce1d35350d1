"""A receiver of webhooks that does as it is told: raw bytes in, raw bytes out, every connection counted."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Self

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Got(NamedTuple):
    """One request as it came in."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header; it must not be there twice."""
        found = [value for each, value in self.headers if each.lower() == name.lower()]
        assert len(found) <= 1, f"{name} came {len(found)} times"
        return found[0] if found else None


Behaviour = Callable[[Got, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answers(status: int, *headers: str, body: bytes = b"") -> Behaviour:
    """Answer with this status."""
    head = "".join(f"{each}\r\n" for each in headers)

    async def answer(_got: Got, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} Told\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body)

    return answer


async def hangs(_got: Got, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Say nothing until the other side is gone."""
    await reader.read()


async def resets(_got: Got, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Cut the connection with a reset."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def drips(_got: Got, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer byte by byte, without end; not even the head is ever complete."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x-a: b\r\n")
        await writer.drain()
        await asyncio.sleep(0.05)


def pours(megabytes: int) -> Behaviour:
    """Answer with a very long body, as far as it is taken."""

    async def pour(_got: Got, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {megabytes << 20}\r\n\r\n".encode())
        for _ in range(megabytes):
            writer.write(b"x" * (1 << 20))
            await writer.drain()

    return pour


class Receiver:
    """Listens on a port of its own. `behave` says what it does with a request."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.host = host
        self.behave: Behaviour = answers(200, body=b"ok")
        self.connections = 0
        self.got: list[Got] = []
        self.sent = 0
        self._server: asyncio.Server
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """Where webhooks go."""
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


async def _request(reader: asyncio.StreamReader) -> Got:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = [(name, value.strip()) for name, _, value in (each.partition(":") for each in rest)]
    length = int(next((value for name, value in headers if name.lower() == "content-length"), "0"))
    return Got(line, headers, await reader.readexactly(length))
