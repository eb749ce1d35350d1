"""Layouts of the source systems' tables, and the conversion of their rows to jobs. No I/O."""

import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from holdfast.api.compat.shapes import default_type
from holdfast.api.compat.systems import CALLS
from holdfast.cli.importing.source import Row
from holdfast.errors import Invalid, Misconfigured, Unavailable
from holdfast.model.bounds import KEY_PATTERN, MAX_ATTEMPTS, MAX_JOB_BYTES, MAX_KEY_LENGTH
from holdfast.model.job import RetryRule
from holdfast.model.time import in_seconds
from holdfast.policy.access import is_tenant
from holdfast.sdk.options import NewJob, RetryOptions

FINISHED = frozenset(
    {"success", "succeeded", "completed", "complete", "done", "finished", "failed", "dead", "cancelled", "canceled"}
)
"""Words for finished jobs, in lower case."""

UNFINISHED = frozenset(
    {"pending", "queued", "ready", "scheduled", "retry", "retrying", "running", "processing", "claimed"}
)

_SOON = timedelta(seconds=1)
"""A job is delayed if it is due at least this long after it was created."""

_KEY = re.compile(KEY_PATTERN, re.ASCII)


class Layout(NamedTuple):
    """Table of a source system; each field lists the names that its column may have."""

    letter: str
    table: str
    type: tuple[str, ...] = ("type", "job_type", "task_type")
    due: tuple[str, ...] = ("scheduled_at", "due_at", "run_at", "next_run_at", "available_at")
    max_attempts: tuple[str, ...] = ("max_attempts",)
    key: tuple[str, ...] = ()
    """Idempotency key of the submission."""
    tenant: tuple[str, ...] = ()
    leased_until: tuple[str, ...] = ()


LAYOUTS = {
    "a": Layout("a", "jobs", key=("idempotency_key",), leased_until=("locked_until",)),
    "c": Layout("c", "tasks", tenant=("tenant_id", "tenant")),
    "d": Layout("d", "jobs"),
    "e": Layout("e", "tasks"),
}


class ImportedRow(NamedTuple):
    """Row, and the job to submit for it."""

    id: str
    tenant: str | None
    job: NewJob
    size: int
    """Bytes of the job as JSON."""


class HeldRow(NamedTuple):
    """Row that a worker of the source system still holds."""

    id: str


class InvalidRow(NamedTuple):
    """Row that cannot become a job, and why."""

    id: str
    reason: str


def check_columns(layout: Layout, table: str, columns: Collection[str]) -> None:
    """Raise `Misconfigured` if the table lacks a column without which a row is no job."""
    required: dict[str, tuple[str, ...]] = {"id": ("id",), "payload": ("payload",), "status": ("status",)}
    if not CALLS[layout.letter][0].submission.action_is_type:
        required["type"] = layout.type
    for name, names in required.items():
        if not set(names) & set(columns):
            raise Misconfigured(
                f"--layout {layout.letter}: the table {table!r} has no column {name!r}, but {', '.join(columns)}: "
                "name another table with --table, or another layout"
            )


def convert(layout: Layout, table: str, row: Row, now: datetime) -> ImportedRow | HeldRow | InvalidRow:
    """Convert a row; the same row always gives the same job, so that it is imported once."""
    row_id = _text(row["id"])
    until = _time(_value(row, layout.leased_until))
    if until is not None and until > now:
        return HeldRow(row_id)
    tenant = _optional_text(_value(row, layout.tenant))
    if tenant is not None and not is_tenant(tenant):
        return InvalidRow(row_id, f"{tenant[:40]!r} is not a tenant name: use letters, digits or _ . : / @ + -")
    try:
        job = _job(layout, table, row, row_id)
    except Invalid as error:
        return InvalidRow(row_id, str(error))
    size = len(msgspec.json.encode(job))
    if size > MAX_JOB_BYTES:
        return InvalidRow(row_id, f"it has {size:,} bytes as JSON, and a job at most {MAX_JOB_BYTES:,}")
    return ImportedRow(row_id, tenant, job, size)


def _job(layout: Layout, table: str, row: Row, row_id: str) -> NewJob:
    status = _text(row["status"]).lower()
    if status not in UNFINISHED:
        raise Invalid(f"status: {status[:40]!r} is not known: change it to pending, or finish the job first")
    payload = _payload(row["payload"])
    submission = CALLS[layout.letter][0].submission
    name = _optional_text(_value(row, layout.type)) or default_type(payload, submission)
    key = _optional_text(_value(row, layout.key))
    if key is None or len(key) > MAX_KEY_LENGTH or not _KEY.fullmatch(key):
        key = f"import:{layout.letter}:{table}:{row_id}"
    job: NewJob = {"type": name, "payload": payload, "idempotency_key": key}
    due, created = _time(_value(row, layout.due)), _time(row.get("created_at"))
    if due is not None and (created is None or due - created >= _SOON):
        job["scheduled_at"] = due
    attempts = _number(_value(row, layout.max_attempts)) or submission.max_attempts
    if attempts is not None:
        job["max_attempts"] = min(MAX_ATTEMPTS, max(1, attempts - (_number(row.get("attempts")) or 0)))
    if (priority := _number(row.get("priority"))) is not None:
        job["priority"] = priority
    if (cost := _number(row.get("cost"))) is not None:
        job["cost"] = cost
    if submission.retry is not None:
        job["retry"] = _retry(submission.retry)
    return job


def _retry(rule: RetryRule) -> RetryOptions:
    if rule.delays:
        return {"delays": [in_seconds(delay) for delay in rule.delays], "jitter": rule.jitter}
    return {"base": in_seconds(rule.base), "jitter": rule.jitter}


def _value(row: Row, names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _payload(value: Any) -> Any:
    """Return the decoded payload: JSON columns arrive as text."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"payload: it is not JSON ({error})") from None


def _text(value: Any) -> str:
    """Return the text of an id or a word; 16 bytes are a UUID."""
    if isinstance(value, bytes):
        return UUID(bytes=value).hex if len(value) == 16 else value.decode("latin-1")
    return str(value)


def _optional_text(value: Any) -> str | None:
    return None if value is None or value == "" else _text(value)


def _number(value: Any) -> int | None:
    try:
        return None if value is None else int(value)
    except ValueError:
        raise Invalid(f"{str(value)[:40]!r} is not a whole number") from None


def _time(value: Any) -> datetime | None:
    """Return a time with its zone; times without one are UTC, as Go's drivers write them."""
    if value is None:
        return None
    try:
        at = value if isinstance(value, datetime) else datetime.fromisoformat(_text(value))
    except ValueError:
        raise Invalid(f"{_text(value)[:40]!r} is not a time: write it as 2030-01-31 12:00:00") from None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


def read_now(value: Any) -> datetime:
    """Convert the time of the source database."""
    now = _time(value)
    if now is None:
        raise Unavailable("--from: the database returned no time")
    return now
