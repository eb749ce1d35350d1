"""Why a job is (not) running: reasons, in the order in which they are to be looked at."""

from datetime import UTC, datetime, timedelta
from typing import Literal

from msgspec import Struct

from holdfast.model.state import Status
from holdfast.model.time import Instant

Code = Literal[
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
    "in_line",
    "runnable",
]


class Reason(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reason: a stable `code`, a `detail` for people, and what else is known, by name."""

    code: Code
    detail: str
    blocks: bool
    """Whether it alone keeps the job from starting now."""
    name: str | None = None
    """Of what rests or limits."""
    since: datetime | None = None
    until: datetime | None = None
    """When it is over, if that is known."""
    by: str | None = None
    why: str | None = None
    used: int | None = None
    most: int | None = None
    holders: list[str] = []
    """Jobs that hold a limit, some of them; of other tenants' only administrators are told."""
    worker: str | None = None
    jobs: int | None = None
    """Ahead of it in its lane."""
    cost: int | None = None
    """Of those, together."""
    at_least: bool = False
    """There are more than were counted."""
    share: float | None = None
    """Its lane's part of its queue, by weight."""
    workers: int | None = None
    """That could take it now."""
    last_seen: datetime | None = None
    """When there was last a worker that could."""


class Estimate(Struct, frozen=True, kw_only=True):
    """When it may start, and from what that was reckoned; no instant where nobody can tell."""

    at: datetime | None
    basis: str


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a job is (not) running, as of an instant."""

    id: str
    status: Status
    as_of: datetime
    runnable: bool
    """Nothing blocks it: a worker with a free slot takes it, in its turn."""
    reasons: list[Reason]
    """What is to be looked at first comes first; never empty."""
    estimate: Estimate

    def __str__(self) -> str:
        return "; ".join(reason.detail for reason in self.reasons)


def moment(at: Instant) -> datetime:
    """An instant as people have it."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
