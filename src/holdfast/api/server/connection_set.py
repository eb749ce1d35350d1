"""Open connections of a node, and which of them close first when there are too many."""

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from holdfast.api.app import Api
from holdfast.api.server.request_head import HeadCache
from holdfast.api.server.timeouts import ServerLimits

if TYPE_CHECKING:
    from holdfast.api.server.connection import Connection

_SHARES = 4
"""An address with more than this fraction of the connections is the first to lose idle ones."""


class ConnectionSet:
    """Open connections of a node and the state they share."""

    def __init__(self, api: Api, limits: ServerLimits) -> None:
        self.api = api
        self.limits = limits
        self.open: set[Connection] = set()
        self.heads = HeadCache()
        self.all_closed = asyncio.Event()
        """Set when the last connection has closed."""
        self.abandoned: set[asyncio.Task[None]] = set()
        """Request tasks whose client disconnected."""
        self._idle: dict[Connection, None] = {}
        """Connections that wait for a complete request head, the longest idle one first."""
        self._by_address: Counter[str] = Counter()
        self._stalled: dict[Connection, str] = {}
        """Callers by connection whose client does not read, the longest stalled one first."""

    def add(self, connection: "Connection") -> bool:
        """Add a new connection, which may close an idle one; return False if there are far too many."""
        self.open.add(connection)
        self._by_address[connection.address] += 1
        self._idle[connection] = None
        if len(self.open) > self.limits.max_connections:
            self._close_idle(except_for=connection)
        return len(self.open) <= 2 * self.limits.max_connections

    def remove(self, connection: "Connection") -> None:
        """Remove a closed connection."""
        if connection not in self.open:
            return
        self.open.discard(connection)
        self.mark_busy(connection)
        self.mark_reading(connection)
        self._by_address[connection.address] -= 1
        if not self._by_address[connection.address]:
            del self._by_address[connection.address]
        if not self.open:
            self.all_closed.set()

    def mark_idle(self, connection: "Connection") -> None:
        """Record that a connection waits for its next request."""
        self._idle[connection] = None

    def mark_busy(self, connection: "Connection") -> None:
        """Record that a connection has a request, so that it is not closed for a new one."""
        self._idle.pop(connection, None)

    @property
    def is_crowded(self) -> bool:
        """True if there are more connections than allowed."""
        return len(self.open) > self.limits.max_connections

    def mark_stalled(self, connection: "Connection", caller: str) -> None:
        """Record unread output; abort the longest stalled connections above the bounds.

        The bounds are per caller and per node. The connection itself is not aborted: one large response is allowed.
        """
        self._stalled.pop(connection, None)
        self._stalled[connection] = caller
        self._bound([each for each, by in self._stalled.items() if by == caller], self.limits.max_unsent_bytes)
        self._bound(list(self._stalled), self.limits.max_node_unsent_bytes)

    def mark_reading(self, connection: "Connection") -> None:
        """Record that the output of a connection was read."""
        self._stalled.pop(connection, None)

    def _bound(self, stalled: "list[Connection]", maximum: int) -> None:
        """Abort connections in this order, but not the last, until `maximum` bytes are left."""
        sizes = [each.transport.get_write_buffer_size() for each in stalled]
        excess = sum(sizes) - maximum
        for connection, size in zip(stalled[:-1], sizes[:-1], strict=True):
            if excess <= 0:
                return
            excess -= size
            self._stalled.pop(connection, None)
            connection.transport.abort()

    def _close_idle(self, *, except_for: "Connection") -> None:
        """Close the longest idle connection, preferably of an address with more than its share."""
        share = max(1, self.limits.max_connections // _SHARES)
        candidates = (each for each in self._idle if each is not except_for)
        crowding = (each for each in self._idle if each is not except_for and self._by_address[each.address] > share)
        victim = next(crowding, None) or next(candidates, None)
        if victim is not None:
            self.mark_busy(victim)
            victim.evict()
