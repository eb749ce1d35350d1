"""Coordination without Redis: every question goes to the database."""

from holdfast.coordination.port import Coordination, CoordinationStatus, RejectionCache
from holdfast.errors import RateLimited


class NoRejectionCache(RejectionCache):
    """Cache that is always empty."""

    async def lookup(self, tenant: str, cost: int) -> RateLimited | None:
        del tenant, cost
        return None

    def add(self, tenant: str, rejection: RateLimited) -> None:
        """Do nothing."""

    def invalidate(self, tenant: str) -> None:
        """Do nothing."""


class NoRedis(Coordination):
    """Coordination of an installation without Redis."""

    def __init__(self) -> None:
        self.rejections = NoRejectionCache()

    def status(self) -> CoordinationStatus:
        return CoordinationStatus(None, 0, {})

    async def aclose(self) -> None:
        """Do nothing."""
