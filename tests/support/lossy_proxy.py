"""A proxy that loses requests and answers now and then, and the connection with each."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PIECE = 1 << 20
_SIZE_OF_GREETINGS = 8
"""Messages each way until a connection is at work; before that there is nothing to be in doubt about."""


class Cutting:
    """In front of a database: what a client sends may never arrive, or be carried out and never be answered."""

    def __init__(self, host: str, port: int, seed: int) -> None:
        self._server = (host, port)
        self._dice = random.Random(seed)
        self._links: set[asyncio.Task[None]] = set()
        self.chance = 0.0
        """Of a request to be lost, and of its answer."""
        self.lost_requests = 0
        self.lost_answers = 0

    async def start(self) -> int:
        """Listen; on which port of 127.0.0.1."""
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def aclose(self) -> None:
        """End it."""
        self._listener.close()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        onward: asyncio.StreamWriter | None = None
        try:
            back, onward = await asyncio.open_connection(*self._server)
            link = _Link(self, self._dice)
            sides = [
                asyncio.create_task(link.requests(reader, onward)),
                asyncio.create_task(link.answers(back, writer)),
            ]
            await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
            for side in sides:
                side.cancel()
            await asyncio.gather(*sides, return_exceptions=True)
        except OSError:
            pass
        finally:
            self._links.discard(task)
            for each in (writer, onward):
                if each is not None:
                    each.transport.abort()


class _Link:
    """One connection, until it is cut."""

    def __init__(self, proxy: Cutting, dice: random.Random) -> None:
        self._proxy = proxy
        self._dice = dice
        self._sent = 0
        self._doomed = False

    async def requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            self._sent += 1
            if self._sent > _SIZE_OF_GREETINGS and self._proxy.chance:
                if self._dice.random() < self._proxy.chance:
                    self._proxy.lost_requests += 1
                    return
                self._doomed |= self._dice.random() < self._proxy.chance
            writer.write(piece)
            await writer.drain()

    async def answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            if self._doomed:  # the server has done it, and nobody will hear of it
                self._proxy.lost_answers += 1
                return
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def cutting(url: str, seed: int) -> AsyncIterator[tuple[Cutting, str]]:
    """Such a proxy in front of a database, and the database's URL through it."""
    at = urlsplit(url)
    proxy = Cutting(at.hostname or "127.0.0.1", at.port or 0, seed)
    port = await proxy.start()
    try:
        yield proxy, at._replace(netloc=f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{port}").geturl()
    finally:
        await proxy.aclose()
