"""Receipts of submissions. A receipt means that the job is durable."""

from typing import NamedTuple

from holdfast.errors import DuplicateJob, HoldfastError, IdempotencyMismatch
from holdfast.model.ids import JobId
from holdfast.model.job import InsertResult, Job, NewJob
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


def receipt_for(job: NewJob, row: InsertResult) -> Receipt | HoldfastError:
    """Return the receipt of an inserted row, or the error if it is a duplicate."""
    match row.repeats:
        case None:
            return Receipt(row.id, row.created_at, replayed=False)
        case "idempotency_key" if not row.same_body:
            return IdempotencyMismatch(
                f"the idempotency key {job.spec.idempotency_key!r} was used before for another job ({row.id}): "
                "use a new key for a new job, or repeat the same submission",
                pointer="/idempotency_key",
            )
        case "unique" if job.unique is not None and job.unique.on_conflict == "reject":
            return DuplicateJob(f"a job like this exists already ({row.id}) and is unique", job_id=str(row.id))
        case "unique" if row.holder is not None:
            why = "running" if row.holder is Status.RUNNING else f"already {row.holder}, and its unique key still held"
            return DuplicateJob(
                f"job {row.id} cannot be replaced because it is {why}: only a waiting job can be; submit again later",
                job_id=str(row.id),
            )
        case _:
            return Receipt(row.id, row.created_at, replayed=True)


def initial_state(job: NewJob, created_at: Instant) -> tuple[Status, Instant | None]:
    """Return the status and due time of a job just inserted, without a read."""
    due = job.spec.scheduled_at
    if due is None:
        if job.spec.delay is None:
            return Status.READY, None
        due = after(created_at, job.spec.delay)
    return Status.SCHEDULED if due > created_at else Status.READY, due
