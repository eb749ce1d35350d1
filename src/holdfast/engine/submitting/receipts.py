"""Receipts of submissions. A receipt means that the job is durable."""

from typing import NamedTuple

import msgspec

from holdfast.model.ids import JobId
from holdfast.model.job import Job, NewJob
from holdfast.model.state import Status
from holdfast.model.time import Instant, after


class Receipt(NamedTuple):
    """Acknowledgement of a submission: the job is durable."""

    id: JobId
    created_at: Instant
    replayed: bool
    """True if an earlier submission with the same key created this job."""


class SubmitResult(NamedTuple):
    """Submitted job and its receipt."""

    job: NewJob
    receipt: Receipt
    earlier: Job | None = None
    """Job of the earlier submission that this one replays, if the caller asked for it."""

    @classmethod
    def of(cls, job: NewJob, receipt: Receipt) -> "SubmitResult":
        """Return the result with the stored id, which is a new one if the insert was repeated."""
        if receipt.id != job.id and not receipt.replayed:
            job = msgspec.structs.replace(job, id=receipt.id)
        return cls(job, receipt)


def initial_state(job: NewJob, created_at: Instant) -> tuple[Status, Instant | None]:
    """Return the status and due time of a job just inserted, without a read."""
    due = job.spec.scheduled_at
    if due is None:
        if job.spec.delay is None:
            return Status.READY, None
        due = after(created_at, job.spec.delay)
    return Status.SCHEDULED if due > created_at else Status.READY, due
