"""Conversion between the model and the wire types of jobs."""

import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET, Raw, UnsetType

from holdfast.errors import Invalid, NotFound, forget_frames
from holdfast.model.decoded_job import Action, decode_tags, latest_error, running_on
from holdfast.model.ids import JobId
from holdfast.model.job import Job, JobFilter, JobSpec, NewJob, RetryRule, UniqueSpec
from holdfast.model.state import Status
from holdfast.model.time import Instant, in_seconds, rfc3339
from holdfast.wire.durations import span
from holdfast.wire.types import (
    DeadFilter,
    FilterShape,
    JobOut,
    RetryShape,
    SubmitBatch,
    SubmitBatchJob,
    SubmitJob,
    UniqueShape,
)

_JOB_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
NULL = Raw(b"null")


def spec_of(body: SubmitJob, *, tenant: str, idempotency_key: str | None) -> JobSpec:
    """Convert a submission to a job spec. Raises `Invalid`."""
    return JobSpec(
        type=body.type,
        payload=body.payload,
        tenant=tenant,
        queue=body.queue,
        priority=body.priority,
        scheduled_at=instant(body.scheduled_at),
        delay=span(body.delay, "/delay"),
        max_attempts=body.max_attempts,
        timeout=span(body.timeout, "/timeout"),
        retry=None if body.retry is None else _retry(body.retry),
        cost=body.cost,
        tags=tuple(body.tags),
        unique=None if body.unique is None else _unique(body.unique),
        deadline=instant(body.deadline),
        concurrency_key=body.concurrency_key,
        idempotency_key=idempotency_key,
    )


def job_out(job: Job, *, actions: list[Action], lease_until: Instant | None = None) -> JobOut:
    """Render a job with the actions that the caller may take, like `decode_job`."""
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
        error=latest_error(job),
        reason=job.reason,
        progress=NULL if job.progress is None else Raw(job.progress),
        tags=decode_tags(job),
        cost=job.cost,
        timeout=None if job.timeout is None else in_seconds(job.timeout),
        deadline=_when(job.deadline),
        concurrency_key=job.concurrency_key,
        idempotency_key=job.idempotency_key,
        generation=job.generation,
        worker=running_on(job),
        lease_until=_when(lease_until),
        workflow_id=None,
        actions=actions,
    )


def job_made(job: NewJob, *, status: Status, due: Instant | None, created_at: Instant, actions: list[Action]) -> JobOut:
    """Render a job that was just inserted, exactly as `job_out` would."""
    spec = job.spec
    created = rfc3339(created_at)
    return JobOut(
        id=str(job.id),
        tenant=spec.tenant,
        queue=spec.queue,
        type=spec.type,
        payload=Raw(job.payload),
        status=status.value,
        priority=spec.priority,
        attempts=0,
        max_attempts=job.max_attempts,
        scheduled_at=_when(due),
        created_at=created,
        started_at=None,
        finished_at=None,
        updated_at=created,
        result=NULL,
        error=None,
        reason=None,
        progress=NULL,
        tags=list(spec.tags),
        cost=spec.cost,
        timeout=None if spec.timeout is None else in_seconds(spec.timeout),
        deadline=_when(spec.deadline),
        concurrency_key=spec.concurrency_key,
        idempotency_key=spec.idempotency_key,
        generation=0,
        worker=None,
        lease_until=None,
        workflow_id=None,
        actions=actions,
    )


def batch_specs(body: SubmitBatch, *, tenant: str) -> list[JobSpec | Invalid]:
    """Convert the jobs of a batch to specs, with an error in place of each invalid job."""

    def spec(job: SubmitBatchJob | Invalid) -> JobSpec | Invalid:
        if isinstance(job, Invalid):
            return job
        try:
            return spec_of(job, tenant=tenant, idempotency_key=job.idempotency_key)
        except Invalid as fault:
            forget_frames(fault)
            return fault

    return [spec(job) for job in body.jobs]


def filter_of(shape: FilterShape | DeadFilter, *, tenant: str | None) -> JobFilter:
    """Convert a filter; `tenant` restricts it, and None stands for all tenants."""
    status = shape.status if isinstance(shape, FilterShape) else "dead"
    return JobFilter(
        tenant=tenant,
        status=None if status is None else Status(status),
        queue=shape.queue,
        type=shape.type,
        tag=shape.tag,
        created_after=instant(shape.created_after),
        created_before=instant(shape.created_before),
        error=shape.error,
    )


def job_id(text: str) -> JobId:
    """Parse a job id from a path. Raises `NotFound` for text that cannot be an id, too."""
    if not _JOB_ID.fullmatch(text):
        raise NotFound.job(text)
    return JobId(UUID(text))


def job_ids(texts: Sequence[str]) -> set[JobId]:
    """Parse job ids from a body or a query. Raises `Invalid`."""
    for index, text in enumerate(texts):
        if not _JOB_ID.fullmatch(text):
            raise Invalid(f"ids[{index}]: {text[:40]!r} is not a job id: give UUIDs", pointer=f"/ids/{index}")
    return {JobId(UUID(text)) for text in texts}


def cursor_of(last: JobId | None) -> str | None:
    """Return the cursor after this job; None after the last page."""
    return None if last is None else urlsafe_b64encode(last.bytes).decode().rstrip("=")


def read_cursor(text: str | None) -> JobId | None:
    """Parse a cursor. It is only a position: authorisation does not depend on it."""
    if text is None:
        return None
    raw = decode_cursor(text)
    if len(raw) != 16:
        raise invalid_cursor()
    return JobId(UUID(bytes=raw))


def group_cursor_of(tenant: str, fingerprint: str) -> str:
    """Return the cursor after this group."""
    return urlsafe_b64encode(f"{tenant} {fingerprint}".encode()).decode().rstrip("=")


def read_group_cursor(text: str | None) -> tuple[str, str] | None:
    """Parse the cursor of a page of groups; like `read_cursor`, only a position."""
    if text is None:
        return None
    try:
        tenant, fingerprint = decode_cursor(text).decode("ascii").split(" ")
    except ValueError:
        raise invalid_cursor() from None
    if "\0" in tenant + fingerprint:
        raise invalid_cursor()
    return tenant, fingerprint


def decode_cursor(text: str) -> bytes:
    """Return the bytes of a cursor. Raises `Invalid`."""
    try:
        return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise invalid_cursor() from None


def invalid_cursor() -> Invalid:
    """Return the error for a cursor that no page returned."""
    return Invalid("cursor: it is not valid: use the `next_cursor` of the previous page, or omit it", pointer="/cursor")


def instant(at: datetime | None) -> Instant | None:
    """Convert a time to an instant, exact to the microsecond."""
    if at is None:
        return None
    since = at - _EPOCH
    return Instant((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _when(at: Instant | None) -> str | None:
    return None if at is None else rfc3339(at)


def _retry(shape: RetryShape) -> RetryRule:
    fields: dict[str, Any] = {}
    for name in ("base", "cap"):
        value = getattr(shape, name)
        if value is not UNSET:
            fields[name] = span(value, f"/retry/{name}")
    if shape.jitter is not UNSET:
        fields["jitter"] = shape.jitter
    if not isinstance(shape.delays, UnsetType):
        fields["delays"] = tuple(span(delay, f"/retry/delays/{i}") for i, delay in enumerate(shape.delays))
    if "base" in fields and "cap" not in fields:
        fields["cap"] = max(fields["base"], RetryRule().cap)
    return RetryRule(**fields)


def _unique(shape: UniqueShape) -> UniqueSpec:
    fields: dict[str, Any] = {}
    if not isinstance(shape.by, UnsetType):
        fields["by"] = tuple(shape.by)
    if shape.within is not UNSET:
        fields["within"] = span(shape.within, "/unique/within")
    if shape.on_conflict is not UNSET:
        fields["on_conflict"] = shape.on_conflict
    return UniqueSpec(**fields)
