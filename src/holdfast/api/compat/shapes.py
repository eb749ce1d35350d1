"""Requests and responses of the source systems, converted from and to those of the API."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

from msgspec import Meta
from msgspec.structs import replace

from holdfast.errors import Invalid
from holdfast.model.bounds import KEY_PATTERN, MAX_BATCH_SIZE, MAX_KEY_LENGTH
from holdfast.model.ids import JobId
from holdfast.model.job import JobSpec, RetryRule, UniqueSpec
from holdfast.model.state import Status
from holdfast.policy.submission import is_name
from holdfast.wire import codec
from holdfast.wire.types import Cursor, JobOut, Limit, Name, Query, RequestBody, SubmitBatchJob, When

_HEX_ID = re.compile(r"[0-9a-fA-F]{32}", re.ASCII)
_KEY = re.compile(KEY_PATTERN, re.ASCII)

MAX_OFFSET = 1_000
"""Jobs that `page` and `offset` may skip; a cursor has no such limit."""


class SourceJob(SubmitBatchJob, kw_only=True):
    """Job to submit: the fields of the API, and those of the source systems."""

    type: Name | None = None  # type: ignore[assignment]
    due_at: When | None = None


class SourceBatch(RequestBody):
    """Jobs to submit together."""

    tasks: Annotated[list[SourceJob], Meta(max_length=MAX_BATCH_SIZE)]


class PageQuery(Query):
    """Filter and page of a list. `page` counts from 1; `cursor` is faster, and has no limit."""

    status: str | None = None
    type: Name | None = None
    tenant: Name | None = None
    limit: Limit = 50
    page: Annotated[int, Meta(ge=1)] = 1
    offset: Annotated[int, Meta(ge=0)] = 0
    cursor: Cursor | None = None
    all: str | None = None
    """Present, with any value: jobs of all tenants, for administrators."""

    @property
    def skipped(self) -> int:
        """Number of jobs before the page. Raises `Invalid` if there are too many."""
        skipped = self.offset + (self.page - 1) * self.limit
        if skipped > MAX_OFFSET:
            name = "offset" if self.offset else "page"
            raise Invalid(
                f"{name}: it skips {skipped:,} jobs, and {MAX_OFFSET:,} are allowed: use cursor, with the "
                "next_cursor of the previous page",
                pointer=f"/{name}",
            )
        return skipped


class Submission(NamedTuple):
    """Rules by which a source system submits a job, where the request leaves them open."""

    retry: RetryRule | None = None
    """Delays between attempts; None for the settings of this node."""
    max_attempts: int | None = None
    unique: UniqueSpec | None = None
    """Check for duplicates of submissions without an idempotency key."""
    action_is_type: bool = False
    """True if a request without a type has it in `payload.action`."""


def spec_of(body: SourceJob, rules: Submission, *, tenant: str, idempotency_key: str | None = None) -> JobSpec:
    """Convert a submission to a job spec. Raises `Invalid`."""
    if body.due_at is not None and body.scheduled_at is not None:
        raise Invalid("due_at and scheduled_at mean the same: give one of them", pointer="/due_at")
    name = body.type or default_type(body.payload, rules)
    key = idempotency_key or body.idempotency_key
    if key is not None and (len(key) > MAX_KEY_LENGTH or not _KEY.fullmatch(key)):
        detail = f"idempotency_key: give 1 to {MAX_KEY_LENGTH} printable ASCII characters"
        raise Invalid(detail, pointer="/idempotency_key")
    body.type = name
    body.scheduled_at = body.scheduled_at or body.due_at
    spec = codec.spec_of(body, tenant=tenant, idempotency_key=key)
    changes: dict[str, Any] = {}
    if spec.retry is None:
        changes["retry"] = rules.retry
    if spec.max_attempts is None:
        changes["max_attempts"] = rules.max_attempts
    if spec.unique is None and key is None:
        changes["unique"] = rules.unique
    return replace(spec, **changes)


def default_type(payload: Any, rules: Submission) -> str:
    """Return the type of a job that names none. Raises `Invalid` if its system needs a type."""
    if not rules.action_is_type:
        raise Invalid("type: this field is missing: add it", pointer="/type")
    action = payload.get("action", "task") if isinstance(payload, dict) else "task"
    if not isinstance(action, str) or not is_name(action):
        raise Invalid(
            "payload.action: it is the type of the task: give 1 to 128 letters, digits or _ . : / @ + -, or add `type`",
            pointer="/payload/action",
        )
    return action


def job_id(text: str) -> JobId:
    """Parse a job id, with or without hyphens. Raises `NotFound`."""
    if _HEX_ID.fullmatch(text):
        text = "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
    return codec.job_id(text)


class Words(NamedTuple):
    """Words of a source system for the states of a job."""

    pending: str
    running: str
    done: str
    failed: str
    cancelled: str

    def of(self, status: str) -> str:
        """Return the word for a status of the API, or for a deleted job."""
        match status:
            case "running":
                return self.running
            case "succeeded":
                return self.done
            case "dead":
                return self.failed
            case "cancelled" | "deleted":
                return self.cancelled
            case _:
                return self.pending

    def statuses(self, word: str) -> tuple[Status, ...]:
        """Return the statuses that a word stands for, in upper or lower case. Raises `Invalid`."""
        found = tuple(status for status in Status if self.of(status).lower() == word.lower())
        if not found:
            raise Invalid(f"status: {word[:40]!r} is not one of {', '.join(dict.fromkeys(self))}", pointer="/status")
        return found


Field = Callable[[JobOut, Words], Any]

FIELDS: Mapping[str, Field] = {
    "status": lambda job, words: words.of(job.status),
    "scheduled_at": lambda job, _: job.scheduled_at or job.created_at,
    "due_at": lambda job, _: job.scheduled_at or job.created_at,
    "completed_at": lambda job, _: job.finished_at,
    "failed_at": lambda job, _: job.finished_at,
    "locked_by": lambda job, _: job.worker,
    "locked_until": lambda job, _: job.lease_until,
    "error": lambda job, _: None if job.error is None else job.error.message,
    "tenant_id": lambda job, _: job.tenant,
}
"""Fields of source systems that the API has under another name or in another form."""


class JobShape(NamedTuple):
    """Form in which a source system writes a job."""

    words: Words
    fields: tuple[str, ...]
    hex_ids: bool = False
    """True for ids of 32 digits without hyphens."""

    def render(self, job: JobOut, fields: tuple[str, ...] | None = None) -> dict[str, Any]:
        """Render a job with its fields, or with some of them."""
        rendered = {"id": job.id.replace("-", "") if self.hex_ids else job.id}
        for name in self.fields if fields is None else fields:
            rendered[name] = FIELDS[name](job, self.words) if name in FIELDS else getattr(job, name)
        return rendered
