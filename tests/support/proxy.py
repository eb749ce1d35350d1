"""TCP proxy with faults: delay, lost data, closed connections."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PIECE = 64 * 1024


class Proxy:
    """Proxy that passes bytes on. Data lost in a black hole never arrives; its connections are cut later."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener: asyncio.Server
        self._links: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._dropping = False
        self.delay = 0.0
        """Additional delay in seconds, each way."""

    @property
    def port(self) -> int:
        """Port on 127.0.0.1."""
        port: int = self._listener.sockets[0].getsockname()[1]
        return port

    def black_hole(self) -> None:
        """Silently drop all data in both directions from now on."""
        self._dropping = True

    def heal(self) -> None:
        """Accept new connections again, and cut those that lost data."""
        self._dropping = False
        self.cut()

    def cut(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        self._writers.add(writer)
        try:
            while self._dropping:  # accept the connection and never respond
                await asyncio.sleep(0.01)
            if writer.transport.is_closing():
                return
            back, onward = await asyncio.open_connection(*self._server)
            self._writers.add(onward)
            await asyncio.gather(self._pass(reader, onward), self._pass(back, writer))
        except OSError:
            pass
        except asyncio.CancelledError:
            pass  # from `aclose`; before Python 3.12, a cancelled stream handler logs an error
        finally:
            self._links.discard(task)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                if self.delay:
                    await asyncio.sleep(self.delay)
                if not self._dropping:
                    writer.write(piece)
                    await writer.drain()
        if not self._dropping:
            writer.transport.abort()

    async def start(self) -> None:
        """Listen."""
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def aclose(self) -> None:
        """Close the proxy and all connections."""
        self._listener.close()
        self.cut()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """Run a proxy in front of a database; yield it and the URL through it."""
    at = urlsplit(url)
    proxy = Proxy(at.hostname or "127.0.0.1", at.port or {"postgresql": 5432}.get(at.scheme, 3306))
    await proxy.start()
    try:
        address = f"{at.netloc.rpartition('@')[0]}@127.0.0.1:{proxy.port}"
        yield proxy, at._replace(netloc=address).geturl()
    finally:
        await proxy.aclose()
