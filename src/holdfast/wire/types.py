"""The shapes of requests and answers that several routes share, and those of jobs. Names are those a user says."""

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

Seconds = Annotated[
    int | float | str,
    Meta(description="Seconds, or a text such as '250ms', '30s', '5m', '1h30m' or '7d'.", examples=[30, "5m"]),
]
When = Annotated[datetime, Meta(tz=True, description="RFC 3339, with offset.", examples=["2030-01-31T12:00:00Z"])]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:/@+-]*$",
        description="1 to 128 letters, digits or _ . : / @ + -, beginning with a letter, a digit or _.",
    ),
]
StatusName = Literal["blocked", "scheduled", "ready", "running", "retrying", "succeeded", "dead", "cancelled"]
Action = Literal["cancel", "retry", "delete"]


class Request(Struct, forbid_unknown_fields=True):
    """A body: a field that is not known is refused, so that a typing error is not silently ignored."""


class Query(Struct, forbid_unknown_fields=True):
    """The parameters of a query string; one that is not known is refused."""


class RetryShape(Request):
    """How long to wait before the next attempt: exponential, or an explicit list whose last entry repeats."""

    base: Seconds | UnsetType = UNSET
    cap: Seconds | UnsetType = UNSET
    jitter: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    delays: Annotated[list[Seconds], Meta(max_length=100)] | UnsetType = UNSET


class UniqueShape(Request):
    """One such job at a time: the same as far as `by` tells."""

    by: list[str] | UnsetType = UNSET
    within: Seconds | UnsetType = UNSET
    on_conflict: Literal["return", "reject"] | UnsetType = UNSET


class SubmitJob(Request):
    """A job to submit."""

    type: Name
    payload: Any = None
    queue: Name = "default"
    priority: Annotated[int, Meta(ge=-1_000, le=1_000)] = 0
    scheduled_at: When | None = None
    delay: Seconds | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    timeout: Seconds | None = None
    retry: RetryShape | None = None
    cost: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    tags: Annotated[list[Annotated[str, Meta(min_length=1, max_length=100)]], Meta(max_length=20)] = []
    unique: UniqueShape | None = None
    deadline: When | None = None
    concurrency_key: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


class SubmitBatchJob(SubmitJob):
    """A job of a batch; it carries its idempotency key itself."""

    idempotency_key: Annotated[str, Meta(min_length=1, max_length=255)] | None = None


class SubmitBatch(Request):
    """Jobs to submit together: all, or none."""

    jobs: list[SubmitBatchJob]


class ReceiptOut(Struct, frozen=True):
    """The answer to one job of a batch: it is durable."""

    id: str
    created_at: str
    replayed: bool
    """An earlier submission with the same key made this job; nothing was added."""


class BatchOut(Struct, frozen=True):
    """The answers to a batch, in its order."""

    items: list[ReceiptOut]


class ErrorOut(Struct, frozen=True):
    """What an attempt failed with."""

    kind: str
    message: str
    fingerprint: str
    traceback: str | UnsetType = UNSET


class ProgressOut(Struct, frozen=True):
    """How far a job is, as its handler tells."""

    fraction: float | None = None
    note: str | None = None


class JobOut(Struct, frozen=True):
    """A job."""

    id: str
    tenant: str
    queue: str
    type: str
    payload: Raw
    status: StatusName
    priority: int
    attempts: int
    max_attempts: int
    scheduled_at: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    updated_at: str
    result: Raw
    error: ErrorOut | None
    reason: str | None
    """Why it was cancelled."""
    progress: Raw
    tags: list[str]
    cost: int
    timeout: float | None
    """Seconds."""
    deadline: str | None
    concurrency_key: str | None
    idempotency_key: str | None
    generation: int
    """How often it was replayed."""
    worker: str | None
    lease_until: str | None
    workflow_id: str | None
    actions: list[Action]
    """What may be done with it now."""


class JobPage(Struct, frozen=True):
    """A page of jobs, newest first."""

    items: list[JobOut]
    next_cursor: str | None
    """For the next page; none when this was the last."""
