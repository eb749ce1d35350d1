"""Conversion between the model and the worker protocol, for nodes and for remote workers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, assert_never
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, Struct, structs

from holdfast.errors import Invalid, forget_frames
from holdfast.model.ids import JobId, WorkerId, worker_name
from holdfast.model.job import Job
from holdfast.model.job_type import MAX_SCHEMA_BYTES, JobType
from holdfast.model.outcome import (
    BackendUnavailable,
    CancelledByHandler,
    Crashed,
    Failed,
    Failure,
    Interrupted,
    LogLine,
    Logs,
    Outcome,
    Report,
    Snoozed,
    Succeeded,
    TimedOut,
)
from holdfast.model.result import bounded_result
from holdfast.model.state import Status
from holdfast.model.step import TRANSACTION_MARK, Step, StepState
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339, seconds
from holdfast.model.worker import WorkerInfo
from holdfast.wire.codec import NULL, instant
from holdfast.wire.durations import LEASE, span
from holdfast.wire.types import AttemptOut, LogLineOut, StepStateName
from holdfast.wire.worker_protocol import (
    About,
    CancelledIn,
    CrashedIn,
    ErrorIn,
    FailedIn,
    HeldOut,
    LeasedJob,
    LogsIn,
    OutcomeFault,
    OutcomeIn,
    ReleasedIn,
    SettleRequest,
    SnoozedIn,
    StepRecord,
    StepRequest,
    SucceededIn,
    TimedOutIn,
    TypeIn,
    UnavailableIn,
)

MAX_STEP_BYTES = 1024 * 1024

_ENCODE = msgspec.json.Encoder().encode
_ATTEMPTS = msgspec.json.Decoder(list[AttemptOut])
_TAGS = msgspec.json.Decoder(list[str])


class AttemptOutcome(NamedTuple):
    """Outcome of an attempt as its worker reports it."""

    id: JobId
    fence: int
    outcome: Outcome
    logs: Logs | None


class _SavedProgress(Struct, omit_defaults=True):
    fraction: float
    note: str = ""


# Used by nodes


def worker_id(text: str) -> WorkerId:
    """Parse the id of a worker."""
    return WorkerId(int(text.removeprefix("w-"), 16))


def job_id(text: str) -> JobId:
    """Parse the id of a job."""
    return JobId(UUID(text))


def lease_of(value: float | str | None) -> Duration | None:
    """Parse the length of a lease. Raises `Invalid` if it is too short or too long."""
    return span(value, "/lease", LEASE)


def info_of(about: About, worker: WorkerId, tenant: str | None) -> WorkerInfo:
    """Convert the description of a worker. Raises `Invalid`."""
    for field in ("name", "host", "version", "queues", "node"):
        if not getattr(about, field).isprintable():
            raise Invalid(
                f"register.{field}: it contains unprintable characters: remove them", pointer=f"/register/{field}"
            )
    name = about.name or worker_name(worker)
    types = None if about.types is None else tuple(about.types)
    return WorkerInfo(
        worker, name, about.host, about.pid, about.version, about.queues, about.slots, tenant, types, about.node
    )


def types_of(about: About) -> list[JobType]:
    """Convert the job types that a worker describes. Raises `Invalid` if a schema is too large."""
    return [
        JobType(
            type=described.type,
            schema=None if described.schema is None else _schema(described.schema, index),
            queue=described.queue,
            max_attempts=described.max_attempts,
            timeout=span(described.timeout, f"/register/described/{index}/timeout"),
            priority=described.priority,
            cost=described.cost,
        )
        for index, described in enumerate(about.described)
    ]


def _schema(schema: dict[str, Any], index: int) -> str:
    text = _ENCODE(schema)
    if len(text) > MAX_SCHEMA_BYTES:
        raise Invalid(
            f"register.described[{index}].schema has {len(text):,} bytes, more than {MAX_SCHEMA_BYTES:,}: omit it",
            pointer=f"/register/described/{index}/schema",
        )
    return text.decode()


def type_in(about: JobType) -> TypeIn:
    """Render a job type for registration."""
    return TypeIn(
        type=about.type,
        schema=None if about.schema is None else msgspec.json.decode(about.schema),
        queue=about.queue,
        max_attempts=about.max_attempts,
        timeout=None if about.timeout is None else in_seconds(about.timeout),
        priority=about.priority,
        cost=about.cost,
    )


def leased(job: Job) -> LeasedJob:
    """Render a job for the worker that claimed it."""
    return LeasedJob(
        id=str(job.id),
        fence=job.fence,
        tenant=job.tenant,
        queue=job.queue,
        type=job.type,
        payload=Raw(job.payload),
        priority=job.priority,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        releases=job.releases,
        generation=job.generation,
        cost=job.cost,
        created_at=rfc3339(job.created_at),
        scheduled_at=None if job.scheduled_at is None else rfc3339(job.scheduled_at),
        started_at=None if job.started_at is None else rfc3339(job.started_at),
        timeout=None if job.timeout is None else in_seconds(job.timeout),
        deadline=None if job.deadline is None else rfc3339(job.deadline),
        tags=_TAGS.decode(job.tags) if job.tags else [],
        concurrency_key=job.concurrency_key,
        idempotency_key=job.idempotency_key,
        progress=NULL if job.progress is None else Raw(job.progress),
        attempt_log=[_without_details(entry) for entry in _ATTEMPTS.decode(job.attempt_log)] if job.attempt_log else [],
    )


def outcome_of(reported: OutcomeIn, pointer: str) -> tuple[Outcome, Logs | None]:
    """Parse the outcome and the log of an attempt. Raises `Invalid` with this pointer."""
    outcome: Outcome
    match reported:
        case SucceededIn(result=value):
            outcome = Succeeded(bounded_result(_ENCODE(value)))
        case FailedIn(error=error, retryable=retryable, retry_in=retry_in):
            failure = Failure(error.kind, error.message, error.traceback)
            outcome = Failed(failure, retryable, span(retry_in, f"{pointer}/retry_in"))
        case TimedOutIn(after=after):
            outcome = TimedOut(span(after, f"{pointer}/after") or Duration(0))
        case CrashedIn(how=how):
            outcome = Crashed(how)
        case SnoozedIn(delay=delay, held=held):
            outcome = Snoozed(span(delay, f"{pointer}/delay") or Duration(0), held)
        case ReleasedIn(started=started):
            outcome = Interrupted(started)
        case UnavailableIn(error=error):
            outcome = BackendUnavailable(Failure(error.kind, error.message, error.traceback))
        case CancelledIn(reason=reason):
            outcome = CancelledByHandler(reason)
        case _:
            assert_never(reported)
    logs = reported.logs
    if logs is None:
        return outcome, None
    return outcome, Logs(tuple(LogLine(line.at, line.level, line.message) for line in logs.lines), logs.dropped)


def outcomes_of(body: SettleRequest) -> tuple[list[AttemptOutcome], list[OutcomeFault]]:
    """Parse the outcomes of a settlement; return the valid ones, and the errors of the others.

    Raises:
        Invalid: No outcome is valid.
    """
    valid: list[AttemptOutcome] = []
    faults: list[OutcomeFault] = []
    for index, reported in enumerate(body.outcomes):
        pointer = f"/outcomes/{index}"
        if isinstance(reported, Invalid):
            faults.append(OutcomeFault(index, reported.code, str(reported), pointer + reported.pointer))
            continue
        try:
            valid.append(AttemptOutcome(job_id(reported.id), reported.fence, *outcome_of(reported, pointer)))
        except Invalid as error:
            forget_frames(error)
            faults.append(OutcomeFault(index, error.code, str(error), error.pointer))
    if faults and not valid:
        raise Invalid(f"outcomes.{faults[0].index}: {faults[0].detail}", pointer=faults[0].pointer)
    return valid, faults


def encode_bounded(value: Any, max_bytes: int, pointer: str) -> bytes:
    """Encode a value as JSON. Raises `Invalid` if it is too large."""
    text = _ENCODE(value)
    if len(text) > max_bytes:
        name = pointer[1:].replace("/", ".")
        raise Invalid(f"{name} has {len(text):,} bytes, more than {max_bytes:,}: send less", pointer=pointer)
    return text


def step_of(request: StepRequest) -> Step:
    """Parse a step to record. Raises `Invalid`."""
    if not request.key.isprintable():
        raise Invalid("key: give 1 to 255 printable characters", pointer="/key")
    result = None if request.result is UNSET else encode_bounded(request.result, MAX_STEP_BYTES, "/result")
    return Step(request.key, StepState.DONE if request.state == "done" else StepState.STARTED, result)


def step_record(step: Step) -> StepRecord:
    """Render a recorded step for the worker of its job."""
    state: StepStateName = "done" if step.state is StepState.DONE else "started"
    if step.result is None:
        return StepRecord(step.key, state, NULL)
    if step.is_transaction:  # the results of its statements are not JSON
        return StepRecord(step.key, state, NULL, transaction=True)
    return StepRecord(step.key, state, Raw(step.result))


def progress_of(fraction: float, note: str) -> bytes:
    """Encode the progress of a job for storage."""
    return _ENCODE(_SavedProgress(fraction, note))


def _without_details(entry: AttemptOut) -> AttemptOut:
    """Return an attempt without its traceback and logs."""
    error = None if entry.error is None else structs.replace(entry.error, traceback=UNSET)
    return structs.replace(entry, error=error, logs=None)


# Used by remote workers


def job_of(leased_job: LeasedJob, worker: WorkerId) -> Job:
    """Parse a claimed job; fields that workers do not get are blank."""
    return Job(
        id=job_id(leased_job.id),
        seq=0,
        status=Status.RUNNING,
        fence=leased_job.fence,
        worker=worker,
        tenant=leased_job.tenant,
        queue=leased_job.queue,
        type=leased_job.type,
        payload=bytes(leased_job.payload),
        priority=leased_job.priority,
        attempts=leased_job.attempts,
        max_attempts=leased_job.max_attempts,
        releases=leased_job.releases,
        generation=leased_job.generation,
        cost=leased_job.cost,
        created_at=parse_time(leased_job.created_at) or Instant(0),
        scheduled_at=parse_time(leased_job.scheduled_at),
        started_at=parse_time(leased_job.started_at),
        timeout=None if leased_job.timeout is None else seconds(leased_job.timeout),
        deadline=parse_time(leased_job.deadline),
        retry=None,
        tags=_ENCODE(leased_job.tags) if leased_job.tags else None,
        concurrency_key=leased_job.concurrency_key,
        idempotency_key=leased_job.idempotency_key,
        attempt_log=_ENCODE(leased_job.attempt_log) if leased_job.attempt_log else None,
        progress=none_if_null(leased_job.progress),
    )


def held_job(held: HeldOut, worker: WorkerId) -> Job:
    """Parse a held job; all other fields are blank."""
    blank = LeasedJob(
        id=held.id, fence=held.fence, tenant="", queue=held.queue, type=held.type, payload=NULL, priority=0,
        attempts=0, max_attempts=0, releases=0, generation=0, cost=0, created_at="1970-01-01T00:00:00Z",
        scheduled_at=None, started_at=None, timeout=None, deadline=None, tags=[], concurrency_key=None,
        idempotency_key=None, progress=NULL, attempt_log=[],
    )  # fmt: skip
    return job_of(blank, worker)


def outcome_in(report: Report) -> OutcomeIn:
    """Render the outcome of an attempt."""
    job, outcome, logs = report
    lines = None if logs is None else LogsIn([LogLineOut(line.at, line.level, line.message) for line in logs.lines])
    if lines is not None and logs is not None:
        lines.dropped = logs.dropped
    common: dict[str, Any] = {"id": str(job.id), "fence": job.fence, "logs": lines}
    match outcome:
        case Succeeded(result):
            return SucceededIn(result=None if result is None else Raw(result), **common)
        case Failed(failure, retryable, retry_in):
            wait = None if retry_in is None else in_seconds(retry_in)
            return FailedIn(error=_error_in(failure), retryable=retryable, retry_in=wait, **common)
        case TimedOut(after):
            return TimedOutIn(after=in_seconds(after), **common)
        case Crashed(how):
            return CrashedIn(how=how, **common)
        case Snoozed(delay, held):
            return SnoozedIn(delay=in_seconds(delay), held=held, **common)
        case Interrupted(started):
            return ReleasedIn(started=started, **common)
        case BackendUnavailable(failure):
            return UnavailableIn(error=_error_in(failure), **common)
        case CancelledByHandler(reason):
            return CancelledIn(reason=reason[:10_000], **common)
        case _:
            assert_never(outcome)


def _error_in(failure: Failure) -> ErrorIn:
    return ErrorIn(failure.kind[:10_000], failure.message[:100_000], failure.traceback[:100_000])


def steps_of(records: Sequence[StepRecord]) -> list[Step]:
    """Parse recorded steps."""

    def result(record: StepRecord) -> bytes | None:
        if record.transaction:
            return TRANSACTION_MARK + b"[]"
        return bytes(record.result) if record.state == "done" else None

    return [
        Step(record.key, StepState.DONE if record.state == "done" else StepState.STARTED, result(record))
        for record in records
    ]


def parse_time(text: str | None) -> Instant | None:
    """Parse a time."""
    return None if text is None else instant(datetime.fromisoformat(text))


def none_if_null(value: Raw) -> bytes | None:
    """Return the JSON text; None for null."""
    return None if bytes(value) == b"null" else bytes(value)
