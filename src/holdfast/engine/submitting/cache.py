"""Cache of idempotency keys and quota rejections that nodes share, consulted before the database.

A cached result is the one that the database would return. The cache never accepts a job.
"""

from collections.abc import Callable, Sequence

from holdfast.coordination.port import Coordination, Known
from holdfast.engine.submitting.receipts import Receipt, receipt_for
from holdfast.errors import HoldfastError, RateLimited
from holdfast.model.job import InsertResult, NewJob
from holdfast.model.time import Duration, Instant
from holdfast.policy import quotas

MAX_KEYS_PER_LOOKUP = 1_000
"""Larger batches go to the database."""


class SubmissionCache:
    """Results of earlier submissions. Belongs to one event loop."""

    def __init__(self, coordination: Coordination, *, now: Callable[[], Instant], key_retention: Duration) -> None:
        self._keys = coordination.keys
        self._limiter = coordination.limiter
        self._now = now
        self._key_retention = key_retention

    @property
    def off(self) -> bool:
        """Return True if idempotency keys are not cached."""
        return self._keys.off

    async def lookup(self, jobs: Sequence[NewJob]) -> list[Receipt | HoldfastError] | None:
        """Return receipts if every job replays an earlier one by its idempotency key, else None.

        Unique jobs are never cached, because the job that holds a unique key changes when that job ends.
        """
        if self.off or len(jobs) > MAX_KEYS_PER_LOOKUP:
            return None
        if any(job.spec.idempotency_key is None or job.unique is not None for job in jobs):
            return None
        now = self._now()
        found = await self._keys.find(jobs)
        valid = [known for known in found if known is not None and known.until > now]
        if len(valid) < len(jobs):
            return None
        return [receipt_for(job, _replay(job, known, now)) for job, known in zip(jobs, valid, strict=True)]

    def remember(self, job: NewJob, receipt: Receipt) -> None:
        """Cache the receipt of a committed submission."""
        if job.spec.idempotency_key is not None and not self.off and not receipt.replayed:
            self._keys.note(job, receipt.id, self._key_retention, receipt.created_at)

    async def reject_early(self, tenant: str, jobs: Sequence[NewJob]) -> None:
        """Raise `RateLimited` if the database would certainly reject these jobs."""
        if rejection := await self._limiter.refusal(tenant, quotas.demand_of(jobs).cost):
            raise rejection

    def remember_rejection(self, tenant: str, error: RateLimited) -> None:
        """Cache a rejection by the database."""
        self._limiter.note(tenant, error)


def _replay(job: NewJob, known: Known, now: Instant) -> InsertResult:
    return InsertResult(known.id, now, "idempotency_key", same_body=known.fingerprint == job.fingerprint)
