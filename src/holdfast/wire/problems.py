"""Error responses: RFC 9457 problem details with a stable code and a pointer to the field."""

from msgspec import UNSET, Struct, UnsetType

from holdfast.errors import (
    Conflict,
    DuplicateJob,
    Forbidden,
    HoldfastError,
    Invalid,
    InvalidBatch,
    LeaseLost,
    NotFound,
    PayloadTooLarge,
    RateLimited,
    Rejected,
    Unauthorized,
    Unavailable,
)
from holdfast.wire.json import Malformed

MEDIA_TYPE = "application/problem+json"

UNAVAILABLE_RETRY_AFTER_S = 2
"""`Retry-After` while the database is unavailable, in seconds."""


class Fault(Struct, frozen=True, omit_defaults=True):
    """Error of one item of a batch."""

    index: int
    """Position in the batch."""
    code: str
    detail: str
    pointer: str = ""
    job_id: str | UnsetType = UNSET
    """Conflicting job."""


class Problem(Struct, frozen=True):
    """Error of a request: what happened and what to do."""

    title: str
    """Short text that is the same for all problems with this status."""
    status: int
    """HTTP status."""
    code: str
    detail: str
    type: str = "about:blank"
    """Kind of the problem as a URI; always `about:blank`."""
    pointer: str | UnsetType = UNSET
    """Invalid field, as a JSON pointer into the body."""
    errors: list[Fault] | UnsetType = UNSET
    """Every invalid item of a batch."""
    job_id: str | UnsetType = UNSET
    """Conflicting job."""


class HttpError(HoldfastError):
    """Error of the HTTP layer, such as an unknown path or a body that is too large."""

    def __init__(self, status: int, code: str, detail: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.problem = Problem(TITLES[status], status, code, detail)
        self.headers = headers or {}


TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Not permitted",
    404: "Not found",
    405: "Method not allowed",
    406: "Not acceptable",
    408: "Request timeout",
    409: "Conflict",
    410: "Gone",
    411: "Length required",
    413: "Too large",
    414: "URI too long",
    415: "Unsupported media type",
    422: "Invalid request",
    429: "Too many requests",
    431: "Header too large",
    500: "Internal error",
    503: "Not available",
}


CODES = (
    "backlog_full", "conflict", "contention", "crowded", "duplicate_job", "encoded_body", "error", "forbidden",
    "framing_too_large", "head_too_large", "idempotency_mismatch", "internal", "invalid", "invalid_batch",
    "job_not_held", "lease_lost", "malformed", "malformed_query", "malformed_request", "method_not_allowed",
    "no_jwt_secret", "no_such_route", "not_found", "not_json", "outcome_unknown", "over_limit", "payload_too_large",
    "query_too_long", "rate_limited", "rejected", "stopping", "too_large", "too_slow", "unauthorized", "unavailable",
)  # fmt: skip
"""Codes of all problems, sorted. A test compares them with the codes in the source."""


_PUBLIC_DETAILS = {
    "unavailable": "the database is unavailable, and nothing was changed: retry",
    "outcome_unknown": "the connection to the database was lost during the commit, so the outcome is unknown: "
    "check it, or retry with the same Idempotency-Key",
}
"""Details of server errors for clients; the text of the database error goes to the log only."""


def problem_of(error: HoldfastError) -> tuple[Problem, dict[str, str]]:
    """Return the problem response for an error, and its headers."""
    if isinstance(error, HttpError):
        return error.problem, error.headers
    status, headers = _status(error)
    pointer = getattr(error, "pointer", "") or UNSET
    faults: list[Fault] | UnsetType = UNSET
    if isinstance(error, InvalidBatch):
        faults = [
            Fault(index, item.code, str(item), getattr(item, "pointer", ""), _conflicting_job(item))
            for index, item in sorted(error.faults.items())
        ]
    text = (_PUBLIC_DETAILS.get(error.code) if status >= 500 else str(error)) or TITLES[status]
    return Problem(
        TITLES[status], status, error.code, text, "about:blank", pointer, faults, _conflicting_job(error)
    ), headers


def _conflicting_job(error: HoldfastError) -> str | UnsetType:
    return error.job_id if isinstance(error, DuplicateJob) else UNSET


def _status(error: HoldfastError) -> tuple[int, dict[str, str]]:
    match error:
        case Malformed():
            return 400, {}
        case PayloadTooLarge():
            return 413, {}
        case Invalid() | Rejected():
            return 422, {}
        case Unauthorized():
            return 401, {"www-authenticate": "Bearer"}
        case Forbidden():
            return 403, {}
        case NotFound():
            return 404, {}
        case Conflict() | LeaseLost():
            return 409, {}
        case RateLimited():
            return 429, {"retry-after": str(max(1, round(error.retry_after + 0.499)))}
        case Unavailable():
            return 503, {"retry-after": str(UNAVAILABLE_RETRY_AFTER_S)}
        case _:
            return 500, {}
