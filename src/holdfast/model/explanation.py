"""Explanation of why a job is (not) running, with reasons in order of importance."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.model.state import Status
from holdfast.model.time import Instant

Time = Annotated[datetime, Meta(tz=True)]

ReasonCode = Literal[
    "finished",
    "running",
    "not_due",
    "parents_missing",
    "deadline_passed",
    "queue_paused",
    "type_paused",
    "tenant_paused",
    "limit_full",
    "rate_spent",
    "held_back",
    "no_worker",
    "worker_unresponsive",
    "in_line",
    "runnable",
]


class Reason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Reason with a stable `code`, a human-readable `detail` and structured facts."""

    code: ReasonCode
    """Stable code of the reason."""
    detail: str
    blocks: bool
    """True if this reason alone prevents the job from starting now."""
    name: str | None = None
    """Name of the paused or limited object, or job type whose handler blocks the worker."""
    since: Time | None = None
    """Start of the condition, if known."""
    until: Time | None = None
    """End of the condition, if known."""
    by: str | None = None
    """Caller who caused it."""
    why: str | None = None
    """Reason that this caller gave."""
    used: int | None = None
    """Number of jobs that count against the limit."""
    most: int | None = None
    """Maximum of the limit."""
    holders: list[str] = []
    """Some jobs that hold the limit; those of other tenants are for administrators only."""
    worker: str | None = None
    """Worker that runs or blocks the job."""
    jobs: int | None = None
    """Number of jobs ahead in the lane."""
    cost: int | None = None
    """Total cost of the jobs ahead."""
    at_least: bool = False
    """True if the count stopped at its maximum."""
    share: float | None = None
    """Weighted share of the lane in its queue."""
    workers: int | None = None
    """Number of live workers that handle the job."""
    last_seen: Time | None = None
    """Last time such a worker was seen."""


class Estimate(Struct, frozen=True, kw_only=True):
    """Estimated start and its basis; `at` is None if it cannot be estimated."""

    at: Time | None
    """Estimated start; null if it cannot be estimated."""
    basis: str
    """Basis of the estimate, for people."""


class Explanation(Struct, frozen=True, kw_only=True):
    """Explanation of why a job is (not) running, as of one instant."""

    id: str
    """Id of the job."""
    status: Status
    as_of: Time
    """Time of the explanation."""
    runnable: bool
    """True if nothing blocks the job: the next worker with a free slot claims it in order."""
    reasons: list[Reason]
    """Most important reason first; never empty."""
    estimate: Estimate
    """Estimated start."""

    def __str__(self) -> str:
        return "; ".join(reason.detail for reason in self.reasons)


def to_datetime(at: Instant) -> datetime:
    """Convert an instant to a UTC datetime."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
