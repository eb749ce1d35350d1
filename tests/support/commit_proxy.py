"""TCP proxy that cuts a connection at a chosen message: before the server sees it, or after it has responded."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

When = Literal["before", "after"]
_PIECE = 1 << 20


class CommitProxy:
    """Proxy in front of a database. `cut` arms it for one message; other messages pass."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._links: set[asyncio.Task[None]] = set()
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
        doomed = asyncio.Event()
        try:
            back, onward = await asyncio.open_connection(*self._server)
            sides = [
                asyncio.create_task(self._requests(reader, onward, doomed)),
                asyncio.create_task(self._responses(back, writer, doomed)),
            ]
            await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
            for side in sides:
                side.cancel()
            await asyncio.gather(*sides, return_exceptions=True)
        except OSError:
            pass
        except asyncio.CancelledError:
            pass  # from `aclose`; before Python 3.12, a cancelled stream handler logs an error
        finally:
            self._links.discard(task)
            for each in (writer, onward):
                if each is not None:
                    each.transport.abort()

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event
    ) -> None:
        while piece := await reader.read(_PIECE):
            if self._pattern is not None and re.search(self._pattern, piece):
                self._pattern = None
                self.cuts += 1
                if self._when == "before":
                    return
                doomed.set()
            writer.write(piece)
            await writer.drain()

    @staticmethod
    async def _responses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        while piece := await reader.read(_PIECE):
            if doomed.is_set():  # executed by the server, unknown to the client
                return
            writer.write(piece)
            await writer.drain()


@asynccontextmanager
async def commit_proxy(url: str) -> AsyncIterator[tuple[CommitProxy, str]]:
    """Run the proxy in front of a database; yield it and the URL through it."""
    at = urlsplit(url)
    proxy = CommitProxy(at.hostname or "127.0.0.1", at.port or {"postgresql": 5432}.get(at.scheme, 3306))
    port = await proxy.start()
    try:
        yield proxy, at._replace(netloc=f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{port}").geturl()
    finally:
        await proxy.aclose()
