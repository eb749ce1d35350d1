"""Coordination through Redis: the rejection cache and the wake-up bus."""

import time
from collections import Counter

from holdfast.coordination.port import Coordination, CoordinationStatus, RejectionCache
from holdfast.coordination.redis_bus import RedisBus
from holdfast.coordination.redis_connection import RedisConnection, Script
from holdfast.coordination.redis_protocol import RedisUnavailable
from holdfast.errors import RateLimited
from holdfast.model.time import Duration, seconds
from holdfast.policy.rate_limit import WindowSnapshot, rate_limited

REJECTION_WINDOW = Script("rejection_window")

WINDOW_LIFETIME = seconds(1)
"""Time for which a stored window is used; a raised quota takes effect within this time."""

LOOKUP_DURATION_S = 2.0
"""Time for which a tenant is looked up after a rejection; other tenants pay nothing."""

_MAX_REJECTED_TENANTS = 10_000


class RedisRejectionCache(RejectionCache):
    """Rate windows as the database had them when it rejected, shared by all nodes."""

    def __init__(self, connection: RedisConnection, prefix: str) -> None:
        self._connection = connection
        self._prefix = prefix
        self._rejected: dict[str, float] = {}
        """Tenants rejected on this node, and the time until which they are looked up."""

    async def lookup(self, tenant: str, cost: int) -> RateLimited | None:
        until = self._rejected.get(tenant)
        if until is None:
            return None
        if time.monotonic() > until:
            del self._rejected[tenant]
            return None
        lookups = self._connection.lookups
        try:
            found = await self._connection.run(REJECTION_WINDOW, self._name(tenant), "lookup", WINDOW_LIFETIME, cost)
        except RedisUnavailable:
            lookups["limits", "away"] += 1
            return None
        lookups["limits", "miss" if found is None else "hit"] += 1
        if found is None:
            return None
        spent, wait, rate, window = found
        return rate_limited(rate, window, spent, Duration(wait))

    def add(self, tenant: str, rejection: RateLimited) -> None:
        window = rejection.evidence
        if not isinstance(window, WindowSnapshot):
            return
        if len(self._rejected) >= _MAX_REJECTED_TENANTS:
            self._rejected.clear()
        self._rejected[tenant] = time.monotonic() + LOOKUP_DURATION_S
        costs = ",".join(map(str, window.costs))
        self._connection.send(
            "EVALSHA", REJECTION_WINDOW.digest, 1, self._name(tenant),
            "store", WINDOW_LIFETIME, window.at, window.rate, window.window, window.newest, costs,
        )  # fmt: skip

    def invalidate(self, tenant: str) -> None:
        self._connection.send("DEL", self._name(tenant))

    def _name(self, tenant: str) -> str:
        return f"{self._prefix}window:{tenant}"


class RedisCoordination(Coordination):
    """Coordination of an installation with Redis.

    Args:
        connection: Connection for commands; closed with this object.
        prefix: First part of every Redis key of this installation.
        rejections: Cache of rejections.
        bus: Wake-up bus, if it is in use; closed with this object.
    """

    def __init__(
        self, connection: RedisConnection, prefix: str, rejections: RejectionCache, bus: RedisBus | None
    ) -> None:
        self.prefix = prefix
        self.rejections = rejections
        self._connection = connection
        self._bus = bus

    def status(self) -> CoordinationStatus:
        connection = self._connection
        return CoordinationStatus(connection.up, connection.losses, Counter(connection.lookups))

    async def aclose(self) -> None:
        if self._bus is not None:
            await self._bus.aclose()
        await self._connection.aclose()
