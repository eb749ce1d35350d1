"""HTTP server: listen, serve until stopped, shut down within a bounded time.

The README in this folder lists its guarantees.
"""

import asyncio
import contextlib
import resource
import socket
import ssl
from collections.abc import Callable

from holdfast.api.app import Api
from holdfast.api.server.connection import Connection
from holdfast.api.server.connection_set import ConnectionSet
from holdfast.api.server.timeouts import DEFAULT_LIMITS, ServerLimits
from holdfast.errors import Misconfigured

GRACE_TIMEOUT_S = 10
"""Time that requests in progress have to finish at shutdown."""

LAST_RESPONSE_TIMEOUT_S = 1.0
"""Time at shutdown in which keep-alive connections get one more response."""

_BACKLOG = 2_048
_RESERVED_FILES = 256
"""File descriptors reserved for everything except connections."""


def bind(host: str, port: int, setting: str = "HOLDFAST_PORT") -> socket.socket:
    """Return a listening socket. Raises `Misconfigured` if the address cannot be bound."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            # Listen now: two processes may bind the same port, and uvloop does not report a failing listen.
            listening.listen(_BACKLOG)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise Misconfigured(
            f"{setting}: cannot listen on {host}:{port} ({reason}): choose another port, or 0 for a free one"
        ) from error
    return listening


async def serve(
    api: Api,
    listening: socket.socket,
    *,
    stop: asyncio.Event,
    ready: Callable[[], None],
    limits: ServerLimits = DEFAULT_LIMITS,
    tls: ssl.SSLContext | None = None,
) -> None:
    """Serve requests until `stop`, then end streams, finish open requests and return.

    Args:
        api: Application that handles the requests.
        listening: Bound, listening socket; closed at the end.
        stop: Starts the shutdown when set.
        ready: Called once connections are accepted.
        limits: Timeouts and size limits.
        tls: Serve HTTPS with this context instead of HTTP.
    """
    _allow_files(limits.max_connections + _RESERVED_FILES)
    connections = ConnectionSet(api, limits)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(connections),
        sock=listening,
        backlog=_BACKLOG,
        ssl=tls,
        ssl_handshake_timeout=None if tls is None else limits.head_timeout_s,
        ssl_shutdown_timeout=None if tls is None else limits.stalled_read_timeout_s,
    )
    ready()
    try:
        await stop.wait()
    finally:
        api.service.stopping.set()
        server.close()
        await _close_all(connections)
        await _finish_abandoned(connections.abandoned)


async def _close_all(connections: ConnectionSet) -> None:
    """Close all connections in stages: last responses, grace period, cancellation, abort.

    A client that is just sending on an idle connection gets a response instead of a reset.
    """
    for connection in connections.open:
        connection.announce_close()
    if await _all_closed(connections, LAST_RESPONSE_TIMEOUT_S):
        return
    for connection in list(connections.open):
        connection.shutdown()
    if await _all_closed(connections, GRACE_TIMEOUT_S):
        return
    for connection in connections.open:  # a cancelled request still sends a 503
        if connection.task is not None:
            connection.task.cancel()
    if not await _all_closed(connections, LAST_RESPONSE_TIMEOUT_S):
        for connection in list(connections.open):
            connection.transport.abort()


async def _finish_abandoned(tasks: set[asyncio.Task[None]]) -> None:
    """Finish requests whose clients disconnected; cancel those that take too long."""
    if tasks:
        _, unfinished = await asyncio.wait(tasks, timeout=GRACE_TIMEOUT_S)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)


async def _all_closed(connections: ConnectionSet, seconds: float) -> bool:
    """Wait up to `seconds`; return whether all connections have closed."""
    connections.all_closed.clear()
    if connections.open:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(connections.all_closed.wait(), seconds)
    return not connections.open


def _allow_files(count: int) -> None:
    """Raise the soft limit on open files as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        allowed = count if hard == resource.RLIM_INFINITY else min(count, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
