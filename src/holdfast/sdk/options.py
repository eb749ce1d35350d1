"""Options of submissions and filters, and their encoding as query, header or JSON. No I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NotRequired, Required, TypedDict

import msgspec

from holdfast.errors import Invalid
from holdfast.model.time import in_seconds, parse_duration
from holdfast.sdk.worker_requests import reject_non_finite

Span = float | str | timedelta
"""Length of time: seconds, a text such as `"5m"`, or a timedelta."""
Rate = str | Mapping[str, Any]
"""Rate limit: a text such as `"10/s"`, or the fields `limit`, `per` and `burst`."""


class RetryOptions(TypedDict, total=False):
    """Delays between attempts: exponential, or the list `delays`, whose last entry repeats."""

    base: Span
    cap: Span
    jitter: float
    delays: Sequence[Span]


class UniqueOptions(TypedDict, total=False):
    """Uniqueness of a job: at most one unfinished job with the same values of `by`."""

    by: Sequence[str]
    within: Span
    on_conflict: str


class JobOptions(TypedDict, total=False):
    """Options of a submission. See `POST /v1/jobs` in the HTTP reference."""

    queue: str
    priority: int
    scheduled_at: datetime
    delay: Span
    max_attempts: int
    timeout: Span
    retry: RetryOptions
    cost: int
    tags: Sequence[str]
    unique: UniqueOptions
    deadline: datetime
    concurrency_key: str
    idempotency_key: str


class NewJob(JobOptions, total=False):
    """Job of a batch for `submit_many`."""

    type: Required[str]
    payload: NotRequired[Any]


class DeadFilter(TypedDict, total=False):
    """Filter of dead letters; a field that is left out matches all."""

    type: str
    queue: str
    tag: str
    tenant: str
    created_after: datetime
    created_before: datetime
    error: str


class JobFilter(DeadFilter, total=False):
    """Filter of jobs; a field that is left out matches all."""

    status: str


class JobListFilter(JobFilter, total=False):
    """Filter of a list of jobs."""

    id_prefix: str
    """First digits of the ids, at least 8."""


def rate_fields(rate: Rate | None) -> Mapping[str, Any] | None:
    """Return the fields of a rate limit; raises `Invalid` for a text that is not a rate."""
    if not isinstance(rate, str):
        return rate
    number, _, period = (part.strip() for part in rate.partition("/"))
    try:
        per = in_seconds(parse_duration(period if period[:1].isdigit() else f"1{period}")) if period else 0.0
        limit = int(number.replace(",", "").replace("_", ""))
    except ValueError:
        per = limit = 0
    if per <= 0 or limit <= 0:
        raise Invalid(f"rate: {rate!r} is not a rate: write 10/s, 100/m or 5/30s", pointer="/rate")
    return {"limit": limit, "per": per}


def header(text: str, pointer: str) -> str:
    """Return the text if an HTTP header can carry it; raises `Invalid` otherwise."""
    if not text.isascii() or not text.isprintable():
        raise Invalid(f"{pointer[1:]}: {text[:40]!r} cannot be sent: use printable ASCII characters", pointer=pointer)
    return text


def query_text(value: Any) -> str:
    """Return a value as text of a query string."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return _with_zone(value).isoformat()
        case timedelta():
            return str(value.total_seconds())
        case _:
            return str(value)


def _with_zone(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise Invalid(f"{at} has no time zone: give one, such as datetime.now(UTC)")
    return at


def _plain(value: Any) -> Any:
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return _with_zone(value)
        case dict():
            return {name: _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def encode_body(fields: Mapping[str, Any]) -> bytes:
    """Return a body as JSON; raises `Invalid` for a value that JSON cannot represent."""
    plain = _plain(dict(fields))
    reject_non_finite(plain)
    try:
        return msgspec.json.encode(plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Invalid(f"the payload cannot be encoded as JSON: {error}", pointer="/payload") from error
