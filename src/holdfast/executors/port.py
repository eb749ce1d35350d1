"""What executors ask of the rest: what all workers share about deliveries."""

from collections.abc import Sequence
from typing import Protocol

from holdfast.model.breaker import Permit
from holdfast.model.time import Duration


class Shared(Protocol):
    """Breakers of destinations, and keys of webhooks. An engine's `deliveries` fit."""

    async def ask(self, tenant: str, destination: str, *, probe_for: Duration) -> Permit:
        """Whether a delivery may go out now: as it is, as a probe, or not."""

    async def succeeded(self, tenant: str, destination: str, *, probe: bool) -> None:
        """The destination answered."""

    async def failed(self, tenant: str, destination: str, error: str, *, probe: bool) -> None:
        """It did not, or not as it should."""

    async def signing_keys(self, tenant: str) -> Sequence[bytes]:
        """What a tenant's webhooks are signed with, the newest first; none when it has no secret."""
