"""What answers of a node mean: values, or the errors that an engine in process would have raised."""

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
"""From whoever answered so: whether it was done, nobody knows."""


class Response(NamedTuple):
    """What came back."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


def read(response: Response, kind: type[T]) -> T:
    """An answer of success as this type; otherwise raises what went wrong."""
    check(response)
    try:
        return msgspec.json.decode(response.body, type=kind)
    except msgspec.DecodeError as error:
        raise OutcomeUnknown(f"the node's answer cannot be read ({error}): is it a holdfast of this version?") from None


def check(response: Response) -> None:
    """Raise what went wrong, unless nothing did."""
    if response.status >= 300:
        raise error_of(response)


def error_of(response: Response) -> HoldfastError:
    """What an answer other than success means."""
    try:
        problem = msgspec.json.decode(response.body, type=Problem)
    except msgspec.DecodeError:
        return _unexplained(response.status)
    text, pointer = problem.detail, "" if problem.pointer is UNSET else problem.pointer
    match problem.code:
        case "invalid_batch":
            faults = [] if problem.errors is UNSET else problem.errors
            return InvalidBatch({each.index: _fault(each) for each in faults})
        case "duplicate_job":
            return DuplicateJob(text, job_id="" if problem.job_id is UNSET else problem.job_id)
        case "rate_limited" | "backlog_full":
            kind = BacklogFull if problem.code == "backlog_full" else RateLimited
            return kind(text, retry_after=retry_after(response) or 1.0)
        case _ if problem.code in _REFUSED:
            return _REFUSED[problem.code](text, pointer=pointer)
        case _ if problem.code in _PLAIN:
            return _PLAIN[problem.code](text)
        case _:
            return _by_status(problem.status, text, pointer)


def _fault(fault: Fault) -> HoldfastError:
    """What is wrong with one item of a batch, as it would be alone."""
    if fault.code == DuplicateJob.code:
        return DuplicateJob(fault.detail, job_id="" if fault.job_id is UNSET else fault.job_id)
    return _REFUSED.get(fault.code, Invalid)(fault.detail, pointer=fault.pointer)


def retry_after(response: Response) -> float | None:
    """For how many seconds a node asks to be left alone."""
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None


_REFUSED: dict[str, type[Invalid]] = {kind.code: kind for kind in (IdempotencyMismatch, OverLimit, PayloadTooLarge)}
_PLAIN: dict[str, type[HoldfastError]] = {
    kind.code: kind for kind in (Conflict, Forbidden, LeaseLost, NotFound, OutcomeUnknown, Unauthorized, Unavailable)
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


def _unexplained(status: int) -> HoldfastError:
    return _by_status(status, f"the answer was {status}, and not from a holdfast node: is the URL right?", "")
