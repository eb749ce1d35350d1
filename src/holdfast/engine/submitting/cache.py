"""What can be answered to a submission without the database, from what nodes share; and what they are to know of it.

A shortcut gives the answer that the database would give, or none. It never accepts a job.
"""

from collections.abc import Callable, Sequence

from holdfast.coordination.port import Coordination, Known
from holdfast.engine.submitting.receipts import Receipt, receipt
from holdfast.errors import HoldfastError, TooMany
from holdfast.model.job import Inserted, NewJob
from holdfast.model.time import Duration, Instant
from holdfast.policy import quotas

MOST_KEYS = 1_000
"""Of a batch; a larger one goes to the database."""


class Shortcuts:
    """Asks before the database is asked, and tells what it answered. Belongs to one event loop."""

    def __init__(self, coordination: Coordination, *, now: Callable[[], Instant], key_retention: Duration) -> None:
        self._keys = coordination.keys
        self._limiter = coordination.limiter
        self._now = now
        self._key_retention = key_retention

    @property
    def off(self) -> bool:
        """Whether nothing is known of keys here."""
        return self._keys.off

    async def known(self, jobs: Sequence[NewJob]) -> list[Receipt | HoldfastError] | None:
        """The answers to jobs that all repeat earlier ones by their keys; None: ask the database.

        A unique job is not looked for: which one it repeats changes when that one ends.
        """
        if self.off or len(jobs) > MOST_KEYS:
            return None
        if any(job.idempotency_key is None or job.unique is not None for job in jobs):
            return None
        now = self._now()
        found = await self._keys.find(jobs)
        sure = [known for known in found if known is not None and known.until > now]
        if len(sure) < len(jobs):
            return None
        return [receipt(job, _repeated(job, known, now)) for job, known in zip(jobs, sure, strict=True)]

    def made(self, job: NewJob, answer: Receipt) -> None:
        """The database has committed this."""
        if job.idempotency_key is not None and not self.off and not answer.repeated:
            self._keys.note(job, answer.id, self._key_retention, answer.created_at)

    async def turn_away(self, tenant: str, jobs: Sequence[NewJob]) -> None:
        """Raise `TooMany` if the database surely would."""
        if refusal := await self._limiter.refusal(tenant, quotas.asked_for(jobs).cost):
            raise refusal

    def refused(self, tenant: str, error: TooMany) -> None:
        """The database has refused."""
        self._limiter.note(tenant, error)


def _repeated(job: NewJob, known: Known, now: Instant) -> Inserted:
    return Inserted(known.id, now, "idempotency_key", same_body=known.fingerprint == job.fingerprint)
