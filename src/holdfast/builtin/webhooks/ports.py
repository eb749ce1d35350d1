"""What executors ask of the rest: what all workers share about deliveries."""

from typing import Protocol

from holdfast.model.breaker import DeliveryPermit
from holdfast.model.job import Job
from holdfast.model.time import Duration


class Shared(Protocol):
    """Breakers of destinations, and signatures. An engine's `deliveries` fit, and so does the sdk (HTTP)."""

    async def before_delivery(
        self, job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes
    ) -> DeliveryPermit:
        """Whether a delivery may go out now, and the signature of this body at this time (seconds since 1970).

        Raises `Unavailable` when that cannot be found out, `LeaseLost` when the job is not the caller's any more.
        """

    async def after_delivery(self, job: Job, destination: str, *, probe: bool, error: str | None) -> None:
        """What came of it: the destination answered, or it did not, or not as it should, and why. Never raises."""
