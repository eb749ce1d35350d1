"""Port for deliveries: circuit breakers of destinations and webhook signing keys."""

from typing import Protocol

from holdfast.model.breaker import Breaker, SigningKeys
from holdfast.model.time import Duration


class BreakerRepository(Protocol):
    """Circuit breakers of destinations that failed recently."""

    async def breakers(self, tenant: str | None, after: tuple[str, str], limit: int) -> list[Breaker]:
        """Return breakers of a tenant (None: all) after this tenant and destination, in order."""

    async def failing_breakers(self, limit: int) -> list[Breaker]:
        """Return breakers that are not closed or have failures, in no order."""

    async def breaker(self, tenant: str, destination: str) -> Breaker | None:
        """Return a breaker, or None."""

    async def lock_breaker(self, tenant: str, destination: str) -> Breaker:
        """Lock and return a breaker until the commit; create a closed one if it is missing."""

    async def save_breaker(self, breaker: Breaker) -> None:
        """Save a breaker; requires the lock."""

    async def prune_breakers(self, keep: Duration, limit: int) -> int:
        """Delete closed breakers unchanged for `keep`; return how many."""


class WebhookSecretRepository(Protocol):
    """Webhook signing keys by tenant."""

    async def signing_keys(self, tenant: str) -> SigningKeys | None:
        """Return the current signing keys of a tenant, or None."""

    async def rotate_signing_key(self, tenant: str, secret: bytes, overlap: Duration) -> None:
        """Replace the signing key; the previous one stays valid for `overlap`."""

    async def drop_signing_keys(self, tenant: str) -> bool:
        """Delete the signing keys; return False if there were none."""
