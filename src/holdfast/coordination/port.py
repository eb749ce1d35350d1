"""Port of the engine to an optional Redis.

Every cached result is one that the database would return. Redis never accepts a job: only the transaction that inserts
a job accepts it.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from holdfast.errors import RateLimited


class RejectionCache(Protocol):
    """Recent rejections by a tenant's rate quota."""

    async def lookup(self, tenant: str, cost: int) -> RateLimited | None:
        """Return the rejection that the database would raise; None if the cache cannot tell."""

    def add(self, tenant: str, rejection: RateLimited) -> None:
        """Cache a rejection by the database."""

    def invalidate(self, tenant: str) -> None:
        """Drop the rejections of a tenant whose quotas were changed."""


class CoordinationStatus(NamedTuple):
    """State of the Redis connection, for metrics."""

    up: bool | None
    """Redis responds; None if no Redis is configured."""
    losses: int
    """Number of times that Redis became unavailable."""
    lookups: Mapping[tuple[str, str], int]
    """Number of lookups by purpose and result: `hit`, `miss` or `away`."""


class Coordination(Protocol):
    """Services that nodes share in addition to the database."""

    rejections: RejectionCache

    def status(self) -> CoordinationStatus:
        """Return the state of the Redis connection."""

    async def aclose(self) -> None:
        """Close all connections."""
