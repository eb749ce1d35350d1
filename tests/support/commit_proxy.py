"""TCP proxy that cuts a connection at a chosen message: before the server sees it, or after it has responded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from tests.support.dropping_proxy import PIECE_BYTES, DroppingProxy, running_proxy

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractAsyncContextManager

When = Literal["before", "after"]


class CommitProxy(DroppingProxy):
    """Proxy in front of a database. `cut` arms it for one message; other messages pass."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(host, port)
        self._pattern: bytes | None = None
        self._when: When = "before"
        self.cuts = 0
        """Number of connections that were cut."""

    def cut(self, pattern: bytes, when: When) -> None:
        """Cut the connection of the next message that matches this pattern."""
        self._pattern, self._when = pattern, when

    def disarm(self) -> None:
        """Let all further messages pass."""
        self._pattern = None

    def new_link(self) -> _Link:
        """Return the handler of a new connection."""
        return _Link(self)

    def cut_at(self, message: bytes) -> When | None:
        """Return when to cut the connection of this message; None if it passes."""
        if self._pattern is None or not re.search(self._pattern, message):
            return None
        self._pattern = None
        self.cuts += 1
        return self._when


class _Link:
    """Connection through the proxy."""

    def __init__(self, proxy: CommitProxy) -> None:
        self._proxy = proxy
        self._drops_responses = False

    async def requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            match self._proxy.cut_at(piece):
                case "before":
                    return
                case "after":
                    self._drops_responses = True
            writer.write(piece)
            await writer.drain()

    async def responses(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(PIECE_BYTES):
            if self._drops_responses:  # executed by the server, unknown to the client
                return
            writer.write(piece)
            await writer.drain()


def commit_proxy(url: str) -> AbstractAsyncContextManager[tuple[CommitProxy, str]]:
    """Run the proxy in front of a database; yield it and the URL through it."""
    return running_proxy(url, CommitProxy)
