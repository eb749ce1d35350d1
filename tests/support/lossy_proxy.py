"""Proxy that randomly drops requests or responses, together with their connection."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.support.dropping_proxy import PIECE_BYTES, DroppingProxy, running_proxy

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractAsyncContextManager

_HANDSHAKE_MESSAGES = 8
"""Messages at the start of a connection that are never dropped."""


class LossyProxy(DroppingProxy):
    """Proxy in front of a database that drops requests, or responses to executed requests."""

    def __init__(self, host: str, port: int, seed: int) -> None:
        super().__init__(host, port)
        self._rng = random.Random(seed)
        self.chance = 0.0
        """Probability that a request is dropped, and that its response is."""
        self.lost_requests = 0
        self.lost_responses = 0

    def new_link(self) -> _Link:
        """Return the handler of a new connection."""
        return _Link(self, self._rng)


class _Link:
    """Connection through the proxy."""

    def __init__(self, proxy: LossyProxy, rng: random.Random) -> None:
        self._proxy = proxy
        self._rng = rng
        self._sent = 0
        self._doomed = False

    async def requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            self._sent += 1
            if self._sent > _HANDSHAKE_MESSAGES and self._proxy.chance:
                if self._rng.random() < self._proxy.chance:
                    self._proxy.lost_requests += 1
                    return
                self._doomed |= self._rng.random() < self._proxy.chance
            writer.write(piece)
            await writer.drain()

    async def responses(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            if self._doomed:  # executed by the server, unknown to the client
                self._proxy.lost_responses += 1
                return
            writer.write(piece)
            await writer.drain()


def lossy_proxy(url: str, seed: int) -> AbstractAsyncContextManager[tuple[LossyProxy, str]]:
    """Run the proxy in front of a database; yield it and the URL through it."""
    return running_proxy(url, lambda host, port: LossyProxy(host, port, seed))
