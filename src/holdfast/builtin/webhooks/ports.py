"""Interface of the webhook handler to the state that all workers share."""

from typing import Protocol

from holdfast.model.breaker import DeliveryPermit
from holdfast.model.job import Job
from holdfast.model.time import Duration


class DeliveryState(Protocol):
    """Circuit breakers of destinations, and signatures.

    Implemented by `deliveries` of an engine and of its HTTP client.
    """

    async def before_delivery(
        self, job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes
    ) -> DeliveryPermit:
        """Return whether a delivery may be sent, and its signature at `at` (Unix seconds).

        Raises:
            Unavailable: The database or node is unavailable.
            LeaseLost: The worker no longer holds the job.
        """

    async def after_delivery(self, job: Job, destination: str, *, probe: bool, error: str | None) -> None:
        """Report the outcome of a delivery; `error` is None on success. Never raises."""
