"""Proxy that randomly drops requests or responses, together with their connection."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PIECE = 1 << 20
_HANDSHAKE_MESSAGES = 8
"""Messages at the start of a connection that are never dropped."""


class LossyProxy:
    """Proxy in front of a database that drops requests, or responses to executed requests."""

    def __init__(self, host: str, port: int, seed: int) -> None:
        self._server = (host, port)
        self._rng = random.Random(seed)
        self._links: set[asyncio.Task[None]] = set()
        self.chance = 0.0
        """Probability that a request is dropped, and that its response is."""
        self.lost_requests = 0
        self.lost_responses = 0

    async def start(self) -> int:
        """Listen on 127.0.0.1 and return the port."""
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def aclose(self) -> None:
        """Close the proxy and all connections."""
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
            link = _Link(self, self._rng)
            sides = [
                asyncio.create_task(link.requests(reader, onward)),
                asyncio.create_task(link.responses(back, writer)),
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
    """Connection through the proxy."""

    def __init__(self, proxy: LossyProxy, rng: random.Random) -> None:
        self._proxy = proxy
        self._rng = rng
        self._sent = 0
        self._doomed = False

    async def requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            self._sent += 1
            if self._sent > _HANDSHAKE_MESSAGES and self._proxy.chance:
                if self._rng.random() < self._proxy.chance:
                    self._proxy.lost_requests += 1
                    return
                self._doomed |= self._rng.random() < self._proxy.chance
            writer.write(piece)
            await writer.drain()

    async def responses(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(_PIECE):
            if self._doomed:  # executed by the server, unknown to the client
                self._proxy.lost_responses += 1
                return
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def lossy_proxy(url: str, seed: int) -> AsyncIterator[tuple[LossyProxy, str]]:
    """Run the proxy in front of a database; yield it and the URL through it."""
    at = urlsplit(url)
    proxy = LossyProxy(at.hostname or "127.0.0.1", at.port or 0, seed)
    port = await proxy.start()
    try:
        yield proxy, at._replace(netloc=f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{port}").geturl()
    finally:
        await proxy.aclose()
