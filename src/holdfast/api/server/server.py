"""Serves the API on a socket, until it is told to stop; nothing that goes on holds the stop up."""

import asyncio
import contextlib
import resource
import socket
from collections.abc import Callable

from holdfast.api.app import Api
from holdfast.api.server.connection import Connections
from holdfast.api.server.timeouts import DEFAULT_LIMITS, Limits
from holdfast.errors import Misconfigured

GRACE = 10
"""Seconds that requests in progress have to end, at a stop."""

LAST_ANSWERS = 1.0
"""Seconds, at a stop, in which connections that are kept open get one more answer, which says that it is the last."""

_BACKLOG = 2_048
_OWN_FILES = 256
"""Files that a node needs beside its connections."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; `Misconfigured` names the setting when it cannot."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            # Now, not when it is served: two may bind at once, and uvloop is silent if it cannot listen.
            listening.listen(_BACKLOG)
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
    connections = Connections(api, limits)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connections.connect, sock=listening, backlog=_BACKLOG)
    ready()
    try:
        await stop.wait()
    finally:
        api.service.stopping.set()
        server.close()
        await _end(connections)
        await _finish(connections.abandoned)


async def _end(connections: Connections) -> None:
    """Connections that are open learn from their last answer that it was the last.

    Whoever just sends something on a connection that was idle is answered, rather than cut off.
    """
    for each in connections.open:
        each.last()
    if await _all_gone(connections, LAST_ANSWERS):
        return
    for each in list(connections.open):
        each.shutdown()
    if await _all_gone(connections, GRACE):
        return
    for each in connections.open:  # each still says why
        if each.task is not None:
            each.task.cancel()
    if not await _all_gone(connections, LAST_ANSWERS):
        for each in list(connections.open):
            each.transport.abort()


async def _finish(tasks: set[asyncio.Task[None]]) -> None:
    """What was begun is ended also if nobody waits for it."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=GRACE)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


async def _all_gone(connections: Connections, seconds: float) -> bool:
    connections.none.clear()
    if connections.open:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(connections.none.wait(), seconds)
    return not connections.open


def _allow_files(wanted: int) -> None:
    """Have room for so many open files, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
