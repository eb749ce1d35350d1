"""What deliveries ask of a database: the breakers of destinations, and the keys that webhooks are signed with."""

from typing import Protocol

from holdfast.model.breaker import Breaker, SigningKeys
from holdfast.model.time import Duration


class Breakers(Protocol):
    """What is known of destinations that gave trouble."""

    async def breakers(self, tenant: str | None, after: tuple[str, str], limit: int) -> list[Breaker]:
        """Those of a tenant (None: of all) after this tenant and destination, in the order of these."""

    async def troubled_breakers(self, limit: int) -> list[Breaker]:
        """Those that are not closed, or have failures, in no order."""

    async def breaker(self, tenant: str, destination: str) -> Breaker | None:
        """One of them."""

    async def lock_breaker(self, tenant: str, destination: str) -> Breaker:
        """One of them, locked until the commit; a new one, closed, if nothing was known."""

    async def save_breaker(self, breaker: Breaker) -> None:
        """Keep this, under the lock."""

    async def prune_breakers(self, keep: Duration, limit: int) -> int:
        """Forget those that are closed and have not changed for so long; how many."""


class WebhookSecrets(Protocol):
    """The keys that webhooks are signed with, by tenant."""

    async def signing_keys(self, tenant: str) -> SigningKeys | None:
        """What a tenant's webhooks are signed with now."""

    async def rotate_signing_key(self, tenant: str, secret: bytes, overlap: Duration) -> None:
        """Sign with this from now on, and for `overlap` also with what was there before."""

    async def drop_signing_keys(self, tenant: str) -> bool:
        """Sign no more; False when there was no key."""
