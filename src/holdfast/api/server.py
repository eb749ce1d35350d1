"""Serves the API on a socket, until it is told to stop; nothing that goes on holds the stop up."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator

import uvicorn

from holdfast.api.app import Api
from holdfast.errors import Misconfigured

LONGEST_HEAD = 16_384
KEEP_ALIVE = 75
GRACE = 10
"""Seconds that requests in progress have to end, at a stop."""


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


async def serve(api: Api, listening: socket.socket, *, stop: asyncio.Event, ready: Callable[[], None]) -> None:
    """Answer requests until `stop`; then end streams, finish what is under way, and return."""
    config = uvicorn.Config(
        api,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        ws="none",
        timeout_keep_alive=KEEP_ALIVE,
        h11_max_incomplete_event_size=LONGEST_HEAD,
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
        stopping.cancel()
        await serving
