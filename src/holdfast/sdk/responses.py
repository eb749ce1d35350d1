"""Decoding of responses: values, or the errors that an engine in this process would raise."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from holdfast.errors import (
    BacklogFull,
    Conflict,
    DuplicateJob,
    Forbidden,
    HoldfastError,
    IdempotencyMismatch,
    Invalid,
    InvalidBatch,
    JobNotHeld,
    LeaseLost,
    NotFound,
    OutcomeUnknown,
    OverLimit,
    PayloadTooLarge,
    RateLimited,
    Unauthorized,
    Unavailable,
)
from holdfast.wire.problems import Fault, Problem

T = TypeVar("T")

_STATUS_UNKNOWN = frozenset({500, 502, 504})
"""Statuses after which the client cannot know whether the request took effect."""


class Response(NamedTuple):
    """HTTP response."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


def read(response: Response, kind: type[T]) -> T:
    """Return the body of a successful response as this type, or raise its error."""
    check(response)
    try:
        return msgspec.json.decode(response.body, type=kind)
    except msgspec.DecodeError as error:
        raise OutcomeUnknown(
            f"the node's response cannot be read ({error}): does it run the same version of holdfast?"
        ) from None


def check(response: Response) -> None:
    """Raise the error of a response that is not a success."""
    if response.status >= 300:
        raise error_of(response)


def error_of(response: Response) -> HoldfastError:
    """Return the error that a response reports."""
    try:
        problem = msgspec.json.decode(response.body, type=Problem)
    except msgspec.DecodeError:
        return _foreign_error(response.status)
    text, pointer = problem.detail, "" if problem.pointer is UNSET else problem.pointer
    match problem.code:
        case "invalid_batch":
            faults = [] if problem.errors is UNSET else problem.errors
            return InvalidBatch({fault.index: _item_error(fault) for fault in faults})
        case "duplicate_job":
            return DuplicateJob(text, job_id="" if problem.job_id is UNSET else problem.job_id)
        case "rate_limited" | "backlog_full":
            kind = BacklogFull if problem.code == "backlog_full" else RateLimited
            return kind(text, retry_after=retry_after(response) or 1.0)
        case _ if problem.code in _INVALID:
            return _INVALID[problem.code](text, pointer=pointer)
        case _ if problem.code in _WITHOUT_POINTER:
            return _WITHOUT_POINTER[problem.code](text)
        case _:
            return _by_status(problem.status, text, pointer)


def _item_error(fault: Fault) -> HoldfastError:
    """Return the error of one item of a batch."""
    if fault.code == DuplicateJob.code:
        return DuplicateJob(fault.detail, job_id="" if fault.job_id is UNSET else fault.job_id)
    return _INVALID.get(fault.code, Invalid)(fault.detail, pointer=fault.pointer)


def retry_after(response: Response) -> float | None:
    """Return the seconds that the node asks the client to wait, if any."""
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None


_INVALID: dict[str, type[Invalid]] = {kind.code: kind for kind in (IdempotencyMismatch, OverLimit, PayloadTooLarge)}
_WITHOUT_POINTER: dict[str, type[HoldfastError]] = {
    kind.code: kind
    for kind in (Conflict, Forbidden, JobNotHeld, LeaseLost, NotFound, OutcomeUnknown, Unauthorized, Unavailable)
}


def _by_status(status: int, text: str, pointer: str) -> HoldfastError:
    match status:
        case 401:
            return Unauthorized(text)
        case 403:
            return Forbidden(text)
        case 404 | 405 | 410:
            return NotFound(text)
        case 409:
            return Conflict(text)
        case 400 | 411 | 413 | 414 | 415 | 422 | 431:
            return Invalid(text, pointer=pointer)
        case _:
            return OutcomeUnknown(text) if status in _STATUS_UNKNOWN else Unavailable(text)


def _foreign_error(status: int) -> HoldfastError:
    return _by_status(status, f"got status {status}, but not from a holdfast node: check the URL", "")
