"""Serves the API on a socket, until it is told to stop; nothing that goes on holds the stop up."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import uvicorn

from holdfast.api.app import Api
from holdfast.api.connection import DEFAULT_LIMITS, Connection, Limits
from holdfast.errors import Misconfigured

GRACE = 10
"""Seconds that requests in progress have to end, at a stop."""

LAST_ANSWERS = 1.0
"""Seconds, at a stop, in which connections that are kept open get one more answer, which says that it is the last."""

_OWN_FILES = 256
"""Files that a node needs beside its connections."""


class _Server(uvicorn.Server):
    """Signals are the command's: it ends several things, in order."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Not here."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections. Those that are open learn from their last answer that it was the last.

        Whoever just sends something on a connection that was idle is answered, rather than cut off.
        """
        for server in self.servers:
            server.close()
        connections = self.last_answers()
        for _ in range(round(LAST_ANSWERS / 0.05)):
            if not connections:
                break
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)

    def last_answers(self) -> set[Any]:
        """Have each connection say with its next answer that it was the last; the connections."""
        connections: set[Any] = self.server_state.connections
        for connection in list(connections):
            connection.last()
        return connections


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; `Misconfigured` names the setting when it cannot."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError:
            listening.close()
            raise
    except OSError as error:
        why = error.strerror or str(error)
        raise Misconfigured(
            f"HOLDFAST_PORT: cannot listen on {host}:{port} ({why}): choose another port, or 0 for a free one"
        ) from error
    return listening


async def serve(
    api: Api,
    listening: socket.socket,
    *,
    stop: asyncio.Event,
    ready: Callable[[], None],
    limits: Limits = DEFAULT_LIMITS,
) -> None:
    """Answer requests until `stop`; then end streams, finish what is under way, and return."""
    _allow_files(limits.connections + _OWN_FILES)
    config = uvicorn.Config(
        api,
        http=partial(Connection, limits=limits, crowded=api.crowded),  # type: ignore[arg-type]  # makes one
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        ws="none",
        timeout_graceful_shutdown=GRACE,
        proxy_headers=False,
        backlog=2_048,
    )
    server = _Server(config, ready)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        api.service.stopping.set()
        server.should_exit = True
        server.last_answers()
        stopping.cancel()
        await serving


def _allow_files(wanted: int) -> None:
    """Have room for so many open files, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
