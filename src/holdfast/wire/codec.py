"""Between the model and what travels."""

import binascii
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.errors import Invalid, NotFound
from holdfast.model.ids import JobId, worker_name
from holdfast.model.job import Job, JobSpec, RetryRule, UniqueSpec
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant, in_seconds, parse_duration, rfc3339
from holdfast.wire.types import Action, ErrorOut, JobOut, RetryShape, SubmitJob, UniqueShape

_JOB_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
NULL = Raw(b"null")
_TAGS = msgspec.json.Decoder(list[str])


class _LastError(msgspec.Struct, frozen=True):
    error: ErrorOut | None = None


_ERRORS = msgspec.json.Decoder(list[_LastError])


def spec_of(asked: SubmitJob, *, tenant: str, idempotency_key: str | None) -> JobSpec:
    """A submission as the engine takes it; `Invalid` for what cannot be read."""
    return JobSpec(
        type=asked.type,
        payload=asked.payload,
        tenant=tenant,
        queue=asked.queue,
        priority=asked.priority,
        scheduled_at=instant(asked.scheduled_at),
        delay=span(asked.delay, "/delay"),
        max_attempts=asked.max_attempts,
        timeout=span(asked.timeout, "/timeout"),
        retry=None if asked.retry is None else _retry(asked.retry),
        cost=asked.cost,
        tags=tuple(asked.tags),
        unique=None if asked.unique is None else _unique(asked.unique),
        deadline=instant(asked.deadline),
        concurrency_key=asked.concurrency_key,
        idempotency_key=idempotency_key,
    )


def job_out(job: Job, *, actions: list[Action], lease_until: Instant | None = None) -> JobOut:
    """A job as it is shown, with what may be done with it."""
    ended = job.status.terminal
    return JobOut(
        id=str(job.id),
        tenant=job.tenant,
        queue=job.queue,
        type=job.type,
        payload=Raw(job.payload),
        status=job.status.value,
        priority=job.priority,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        scheduled_at=_when(job.scheduled_at),
        created_at=rfc3339(job.created_at),
        started_at=_when(job.started_at),
        finished_at=_when(job.finished_at),
        updated_at=rfc3339(job.finished_at or job.started_at or job.created_at),
        result=NULL if job.result is None else Raw(job.result),
        error=None if job.status is Status.SUCCEEDED else last_error(job),
        reason=job.reason,
        progress=NULL if job.progress is None else Raw(job.progress),
        tags=_TAGS.decode(job.tags) if job.tags else [],
        cost=job.cost,
        timeout=None if job.timeout is None else in_seconds(job.timeout),
        deadline=_when(job.deadline),
        concurrency_key=job.concurrency_key,
        idempotency_key=job.idempotency_key,
        generation=job.generation,
        worker=None if job.worker is None or ended else worker_name(job.worker),
        lease_until=_when(lease_until),
        workflow_id=None,
        actions=actions,
    )


def last_error(job: Job) -> ErrorOut | None:
    """What the latest attempt that failed, failed with; without its traceback."""
    if not job.attempt_log:
        return None
    for entry in reversed(_ERRORS.decode(job.attempt_log)):
        if entry.error is not None:
            return msgspec.structs.replace(entry.error, traceback=UNSET)
    return None


def job_id(text: str) -> JobId:
    """An id from a path; one that cannot be is as unknown as one that is not there."""
    if not _JOB_ID.fullmatch(text):
        raise not_found(text)
    return JobId(UUID(text))


def not_found(text: object) -> NotFound:
    """The one answer for what is not there and for what belongs to somebody else."""
    return NotFound(f"there is no job {str(text)[:40]!r}")


def cursor_of(last: JobId) -> str:
    """Where the next page begins."""
    return urlsafe_b64encode(last.bytes).decode().rstrip("=")


def read_cursor(text: str | None) -> JobId | None:
    """A cursor as a page gave it. It says only where to go on: whose jobs are seen is decided anew."""
    if text is None:
        return None
    try:
        return JobId(UUID(bytes=urlsafe_b64decode(text[:64] + "=" * (-len(text) % 4))))
    except (ValueError, binascii.Error):
        raise Invalid("the cursor is none that a page gave: begin without one", pointer="/cursor") from None


def instant(at: datetime | None) -> Instant | None:
    """A time as the engine counts it, exact to the microsecond."""
    if at is None:
        return None
    since = at - _EPOCH
    return Instant((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


def span(value: float | str | None, pointer: str) -> Duration | None:
    """A length of time as it was written."""
    if value is None:
        return None
    try:
        return parse_duration(value)
    except ValueError as error:
        raise Invalid(f"{pointer[1:].replace('/', '.')}: {error}", pointer=pointer) from None


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _when(at: Instant | None) -> str | None:
    return None if at is None else rfc3339(at)


def _retry(asked: RetryShape) -> RetryRule:
    given: dict[str, Any] = {}
    for name in ("base", "cap"):
        value = getattr(asked, name)
        if value is not UNSET:
            given[name] = span(value, f"/retry/{name}")
    if asked.jitter is not UNSET:
        given["jitter"] = asked.jitter
    if not isinstance(asked.delays, UnsetType):
        given["delays"] = tuple(span(each, f"/retry/delays/{i}") for i, each in enumerate(asked.delays))
    if "base" in given and "cap" not in given:
        given["cap"] = max(given["base"], RetryRule().cap)
    return RetryRule(**given)


def _unique(asked: UniqueShape) -> UniqueSpec:
    given: dict[str, Any] = {}
    if not isinstance(asked.by, UnsetType):
        given["by"] = tuple(asked.by)
    if asked.within is not UNSET:
        given["within"] = span(asked.within, "/unique/within")
    if asked.on_conflict is not UNSET:
        given["on_conflict"] = asked.on_conflict
    return UniqueSpec(**given)
