"""Base of the TCP proxies that drop messages of a database connection together with the connection."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PIECE_BYTES = 1 << 20


class Link(Protocol):
    """Connection through a proxy. It is closed as soon as one of the two calls returns."""

    async def requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass requests on to the server."""

    async def responses(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass responses on to the client."""


class DroppingProxy:
    """Proxy in front of a server; `new_link` decides what passes."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._tasks: set[asyncio.Task[None]] = set()

    def new_link(self) -> Link:
        """Return the handler of a new connection."""
        raise NotImplementedError

    async def start(self) -> int:
        """Listen on 127.0.0.1 and return the port."""
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    async def aclose(self) -> None:
        """Close the proxy and all connections."""
        self._listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        to_server: asyncio.StreamWriter | None = None
        link = self.new_link()
        try:
            from_server, to_server = await asyncio.open_connection(*self._server)
            sides = [
                asyncio.create_task(link.requests(reader, to_server)),
                asyncio.create_task(link.responses(from_server, writer)),
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
            self._tasks.discard(task)
            for stream in (writer, to_server):
                if stream is not None:
                    stream.transport.abort()


P = TypeVar("P", bound=DroppingProxy)


@asynccontextmanager
async def running_proxy(url: str, make: Callable[[str, int], P]) -> AsyncIterator[tuple[P, str]]:
    """Run a proxy in front of a database; yield it and the URL through it."""
    at = urlsplit(url)
    proxy = make(at.hostname or "127.0.0.1", at.port or {"postgresql": 5432}.get(at.scheme, 3306))
    port = await proxy.start()
    try:
        yield proxy, at._replace(netloc=f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{port}").geturl()
    finally:
        await proxy.aclose()
