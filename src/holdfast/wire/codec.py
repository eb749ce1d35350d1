"""Between the model and what travels."""

import binascii
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, UnsetType

from holdfast.errors import Invalid, NotFound
from holdfast.model.ids import JobId, worker_name
from holdfast.model.job import Job, JobFilter, JobSpec, NewJob, RetryRule, UniqueSpec
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import Duration, Instant, in_seconds, parse_duration, rfc3339
from holdfast.wire.types import (
    Action,
    AttemptOut,
    DeadFilter,
    ErrorOut,
    FilterShape,
    JobDetail,
    JobOut,
    LineageOut,
    RetryShape,
    StepOut,
    SubmitBatch,
    SubmitBatchJob,
    SubmitJob,
    UniqueShape,
)

_JOB_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
NULL = Raw(b"null")
_TAGS = msgspec.json.Decoder(list[str])


class _LastError(msgspec.Struct, frozen=True):
    error: ErrorOut | None = None


_ERRORS = msgspec.json.Decoder(list[_LastError])
_ATTEMPTS = msgspec.json.Decoder(list[AttemptOut])


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


def job_made(job: NewJob, *, status: Status, due: Instant | None, created_at: Instant, actions: list[Action]) -> JobOut:
    """A job as it is shown right after it was inserted: as `job_out` would show it."""
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


def job_detail(
    job: Job, *, actions: list[Action], steps: Sequence[Step], lease_until: Instant | None = None
) -> JobDetail:
    """A job with all that is known of it."""
    shown = job_out(job, actions=actions, lease_until=lease_until)
    return JobDetail(
        **{name: getattr(shown, name) for name in shown.__struct_fields__},
        attempt_log=_ATTEMPTS.decode(job.attempt_log) if job.attempt_log else [],
        steps=[
            StepOut(
                each.key,
                "done" if each.state is StepState.DONE else "started",
                rfc3339(each.recorded_at),
                NULL if each.result is None or each.is_transaction else Raw(each.result),
                each.is_transaction,
            )
            for each in steps
        ],
        lineage=LineageOut(job.generation),
    )


def batch_specs(body: SubmitBatch, *, tenant: str) -> list[JobSpec | Invalid]:
    """The jobs of a batch as the engine takes them, with a fault in the place of each that cannot be read."""

    def spec(asked: SubmitBatchJob | Invalid) -> JobSpec | Invalid:
        if isinstance(asked, Invalid):
            return asked
        try:
            return spec_of(asked, tenant=tenant, idempotency_key=asked.idempotency_key)
        except Invalid as fault:
            return fault

    return [spec(asked) for asked in body.jobs]


def filter_of(asked: FilterShape | DeadFilter, *, tenant: str | None) -> JobFilter:
    """Which jobs are asked for, of this tenant (None: of all)."""
    status = asked.status if isinstance(asked, FilterShape) else "dead"
    return JobFilter(
        tenant=tenant,
        status=None if status is None else Status(status),
        queue=asked.queue,
        type=asked.type,
        tag=asked.tag,
        created_after=instant(asked.created_after),
        created_before=instant(asked.created_before),
        error=asked.error,
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
        raise NotFound.job(text)
    return JobId(UUID(text))


def job_ids(texts: Sequence[str]) -> set[JobId]:
    """Ids from a body or a query; `Invalid` for one that cannot be."""
    for index, text in enumerate(texts):
        if not _JOB_ID.fullmatch(text):
            raise Invalid(f"ids[{index}] is {text[:40]!r}, which is no id of a job", pointer=f"/ids/{index}")
    return {JobId(UUID(text)) for text in texts}


def cursor_of(last: JobId | None) -> str | None:
    """Where the next page begins; None after the last."""
    return None if last is None else urlsafe_b64encode(last.bytes).decode().rstrip("=")


def read_cursor(text: str | None) -> JobId | None:
    """A cursor as a page gave it. It says only where to go on: whose jobs are seen is decided anew."""
    if text is None:
        return None
    raw = _unpacked(text)
    if len(raw) != 16:
        raise _no_cursor()
    return JobId(UUID(bytes=raw))


def group_cursor_of(tenant: str, fingerprint: str) -> str:
    """Where the next page of groups begins."""
    return urlsafe_b64encode(f"{tenant} {fingerprint}".encode()).decode().rstrip("=")


def read_group_cursor(text: str | None) -> tuple[str, str] | None:
    """A cursor as a page of groups gave it; as with `read_cursor`, only a place in an order."""
    if text is None:
        return None
    try:
        tenant, fingerprint = _unpacked(text).decode("ascii").split(" ")
    except ValueError:
        raise _no_cursor() from None
    if "\0" in tenant + fingerprint:
        raise _no_cursor()
    return tenant, fingerprint


def _unpacked(text: str) -> bytes:
    try:
        return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raise _no_cursor() from None


def _no_cursor() -> Invalid:
    return Invalid("the cursor is none that a page gave: begin without one", pointer="/cursor")


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
