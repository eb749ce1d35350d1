"""What a submission or a filter may say, and how it is written: as a query, a header, or JSON. No I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NotRequired, Required, TypedDict

import msgspec

from holdfast.errors import Invalid
from holdfast.sdk.worker_requests import refuse_infinite

Span = float | str | timedelta
"""A length of time: seconds, a text such as `"5m"`, or a timedelta."""


class RetryOptions(TypedDict, total=False):
    """How long to wait before the next attempt."""

    base: Span
    cap: Span
    jitter: float
    delays: Sequence[Span]


class UniqueOptions(TypedDict, total=False):
    """One such job at a time: the same as far as `by` tells."""

    by: Sequence[str]
    within: Span
    on_conflict: str


class JobOptions(TypedDict, total=False):
    """What a submission may say beside type and payload."""

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
    """A job of a batch."""

    type: Required[str]
    payload: NotRequired[Any]


class DeadFilter(TypedDict, total=False):
    """Which dead letters; what is left out matches all."""

    type: str
    queue: str
    tag: str
    tenant: str
    created_after: datetime
    created_before: datetime
    error: str


class JobFilter(DeadFilter, total=False):
    """Which jobs; what is left out matches all."""

    status: str


def header(text: str, pointer: str) -> str:
    """A text that can stand in a header; `Invalid` otherwise."""
    if not text.isascii() or not text.isprintable():
        raise Invalid(f"{pointer[1:]}: {text[:40]!r} cannot be sent: use printable ASCII characters", pointer=pointer)
    return text


def text(value: Any) -> str:
    """A value in a query."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return _moment(value).isoformat()
        case _:
            return str(value)


def _moment(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise Invalid(f"{at} has no time zone: give one, such as datetime.now(UTC)")
    return at


def _plain(value: Any) -> Any:
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return _moment(value)
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case _:
            return value


def encoded(given: Mapping[str, Any]) -> bytes:
    """A body; `Invalid` for what JSON cannot carry."""
    plain = _plain(dict(given))
    refuse_infinite(plain)
    try:
        return msgspec.json.encode(plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Invalid(f"the payload cannot be written as JSON: {error}", pointer="/payload") from error
