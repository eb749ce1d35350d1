"""Jobs as applications, handlers and clients see them: decoded, without internal fields."""

from datetime import UTC, datetime, timedelta
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from holdfast.model import job
from holdfast.model.ids import worker_name
from holdfast.model.state import Status
from holdfast.model.time import Instant, in_seconds

TimeT = TypeVar("TimeT")
JsonT = TypeVar("JsonT")
StatusT = TypeVar("StatusT")
ProgressT = TypeVar("ProgressT")

Action = Literal["cancel", "retry", "delete"]
"""Actions that a user may apply to a job."""


class ErrorOut(Struct, frozen=True):
    """Error of a failed attempt."""

    kind: str
    """Type of the error, such as the name of an exception."""
    message: str
    """Text of the error."""
    fingerprint: str = ""
    traceback: str | UnsetType = UNSET


class ProgressOut(Struct, frozen=True):
    """Progress of a job, as its handler reports it."""

    fraction: float | None = None
    """Fraction of the work that is done, from 0 to 1; null if unknown."""
    note: str | None = None
    """Text for people; null if there is none."""


class JobFields(Struct, Generic[TimeT, JsonT, StatusT, ProgressT], frozen=True):
    """Fields of a job."""

    id: str
    """Id of the job."""
    tenant: str
    queue: str
    type: str
    payload: JsonT
    status: StatusT
    priority: int
    attempts: int
    max_attempts: int
    scheduled_at: TimeT | None
    created_at: TimeT
    """Time of the submission."""
    started_at: TimeT | None
    finished_at: TimeT | None
    updated_at: TimeT
    result: JsonT
    error: ErrorOut | None
    """Error of the last attempt."""
    reason: str | None
    """Reason for the cancellation."""
    progress: ProgressT
    tags: list[str]
    cost: int
    timeout: float | None
    """Seconds."""
    deadline: TimeT | None
    concurrency_key: str | None
    idempotency_key: str | None
    generation: int
    """Number of replays."""
    worker: str | None
    lease_until: TimeT | None
    workflow_id: str | None
    actions: list[Action]
    """Actions that the current status allows."""


class Job(JobFields[datetime, Any, Status, ProgressOut | None], frozen=True):
    """A job as it was when it was read. Times are `datetime` in UTC.

    `handle.job()`, `ctx.job` and the HTTP client return it.

    Attributes:
        id: UUID of the job, as text.
        tenant: Tenant that the job belongs to.
        queue: Queue in which it waits.
        type: Name of the job type.
        payload: Arguments: the decoded JSON, without the defaults of the function.
        status: Current status.
        priority: Jobs with a higher priority run first.
        attempts: Number of attempts so far, including a running one.
        max_attempts: Number of attempts before the job is dead.
        scheduled_at: Time before which the job does not start, or start again; None if it may start at once.
        created_at: Time of the submission.
        started_at: Start of the latest attempt; None before the first.
        finished_at: Time at which the job succeeded, died or was cancelled; None before that.
        updated_at: The latest of the times of submission, start and end.
        result: Decoded JSON result; None unless the job has succeeded.
        error: Error of the latest failed attempt, with `kind`, `message` and `fingerprint`; None if there is none or
            if the job has succeeded.
        reason: Why the job was cancelled.
        progress: Latest progress, with `fraction` (0 to 1) and `note`; None if the handler reported none.
        tags: Labels to filter by.
        cost: Weight of the job in quotas and fair scheduling.
        timeout: Maximum duration of one attempt, in seconds; None if the default applies.
        deadline: The job is cancelled if it has not started by then.
        concurrency_key: Jobs with the same key run one at a time, unless a limit allows more.
        idempotency_key: Key of the submission.
        generation: How often the job was replayed after it had finished.
        worker: Name of the worker that runs the job; None unless it is running.
        lease_until: End of that worker's lease, if the job was read alone over HTTP.
        workflow_id: Reserved; None.
        actions: Actions that the status of the job allows: `cancel`, `retry`, `delete`.
    """


class _AttemptError(Struct, frozen=True):
    error: ErrorOut | None = None


_ATTEMPT_ERRORS = msgspec.json.Decoder(list[_AttemptError])
_TAGS = msgspec.json.Decoder(list[str])
_PROGRESS = msgspec.json.Decoder(ProgressOut)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode_job(stored: job.Job, actions: list[Action]) -> Job:
    """Decode a stored job; `wire.codec.job_out` renders the same fields as JSON."""
    return Job(
        id=str(stored.id),
        tenant=stored.tenant,
        queue=stored.queue,
        type=stored.type,
        payload=msgspec.json.decode(stored.payload),
        status=stored.status,
        priority=stored.priority,
        attempts=stored.attempts,
        max_attempts=stored.max_attempts,
        scheduled_at=_when(stored.scheduled_at),
        created_at=_datetime(stored.created_at),
        started_at=_when(stored.started_at),
        finished_at=_when(stored.finished_at),
        updated_at=_datetime(stored.finished_at or stored.started_at or stored.created_at),
        result=None if stored.result is None else msgspec.json.decode(stored.result),
        error=latest_error(stored),
        reason=stored.reason,
        progress=None if stored.progress is None else _PROGRESS.decode(stored.progress),
        tags=decode_tags(stored),
        cost=stored.cost,
        timeout=None if stored.timeout is None else in_seconds(stored.timeout),
        deadline=_when(stored.deadline),
        concurrency_key=stored.concurrency_key,
        idempotency_key=stored.idempotency_key,
        generation=stored.generation,
        worker=running_on(stored),
        lease_until=None,
        workflow_id=None,
        actions=actions,
    )


def latest_error(stored: job.Job) -> ErrorOut | None:
    """Return the latest error without its traceback; None if the job has succeeded."""
    if not stored.attempt_log or stored.status is Status.SUCCEEDED:
        return None
    for entry in reversed(_ATTEMPT_ERRORS.decode(stored.attempt_log)):
        if entry.error is not None:
            return msgspec.structs.replace(entry.error, traceback=UNSET)
    return None


def decode_tags(stored: job.Job) -> list[str]:
    """Return the tags of a stored job."""
    return _TAGS.decode(stored.tags) if stored.tags else []


def running_on(stored: job.Job) -> str | None:
    """Return the name of the worker that holds the job, or None."""
    return None if stored.worker is None or stored.status.terminal else worker_name(stored.worker)


def _datetime(at: Instant) -> datetime:
    return _EPOCH + timedelta(microseconds=at)


def _when(at: Instant | None) -> datetime | None:
    return None if at is None else _datetime(at)
