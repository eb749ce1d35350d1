"""Jobs: as they are submitted, as they are stored, as they are looked for."""

from typing import Any, Literal, NamedTuple

from msgspec import Struct

from holdfast.model.ids import JobId, WorkerId
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant


class RetryRule(Struct, frozen=True, omit_defaults=True):
    """How long to wait before the next attempt: exponential, or an explicit list whose last entry repeats."""

    base: Duration = Duration(1_000_000)
    cap: Duration = Duration(300_000_000)
    jitter: float = 0.2
    delays: tuple[Duration, ...] = ()


OnConflict = Literal["return", "replace", "reject"]
"""What becomes of a further job like a unique one: that one again; in its place, if it waits still; or nothing."""


class Unique(Struct, frozen=True):
    """One such job at a time: while the earlier one is unfinished, and for `within` after it was submitted."""

    key: str
    within: Duration = Duration(0)
    on_conflict: OnConflict = "return"


class NewJob(Struct, frozen=True):
    """A job that was checked and can be inserted."""

    id: JobId
    tenant: str
    queue: str
    type: str
    payload: bytes
    priority: int = 0
    max_attempts: int = 5
    cost: int = 1
    scheduled_at: Instant | None = None
    delay: Duration | None = None
    timeout: Duration | None = None
    deadline: Instant | None = None
    retry: RetryRule | None = None
    tags: tuple[str, ...] = ()
    concurrency_key: str | None = None
    idempotency_key: str | None = None
    fingerprint: bytes = b""
    """Of all that was asked for: tells a repeated submission from a reused key."""
    unique: Unique | None = None


class InsertResult(NamedTuple):
    """What became of one `NewJob`."""

    id: JobId
    """The new job's, or of the one it repeats."""
    created_at: Instant
    """When this was inserted, or found to be a repeat."""
    repeats: Literal["idempotency_key", "unique"] | None = None
    same_body: bool = True
    """Of a repeat: whether the earlier submission asked for the same."""
    holder: Status | None = None
    """Of one that was to replace the earlier one and could not: where that stands."""


class Job(Struct, frozen=True, gc=False):
    """A stored job. `payload`, `result`, `attempt_log` and `progress` are JSON, decoded by whoever looks inside."""

    id: JobId
    seq: int
    status: Status
    fence: int
    worker: WorkerId | None
    tenant: str
    queue: str
    type: str
    payload: bytes
    priority: int
    attempts: int
    max_attempts: int
    releases: int
    generation: int
    cost: int
    created_at: Instant
    scheduled_at: Instant | None
    started_at: Instant | None
    timeout: Duration | None
    deadline: Instant | None
    retry: bytes | None
    tags: bytes | None
    concurrency_key: str | None
    idempotency_key: str | None
    attempt_log: bytes | None
    """JSON array: an entry for each attempt that did not succeed or that logged something, oldest first."""
    progress: bytes | None = None
    """JSON: how far the latest attempt that told it came."""
    slots: int = 0
    """While it runs: which limits count it."""
    finished_at: Instant | None = None
    result: bytes | None = None
    reason: str | None = None
    fingerprint: str | None = None


class HeldJob(NamedTuple):
    """A job as a holder names it: it acts only while the row still has this fence and this holder."""

    id: JobId
    fence: int
    worker: WorkerId


class JobFilter(Struct, frozen=True):
    """Which jobs; a field left out matches all."""

    tenant: str | None = None
    status: Status | None = None
    queue: str | None = None
    type: str | None = None
    tag: str | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    error: str | None = None
    """The fingerprint of what a dead job failed with last."""
    finished: bool | None = None


class Page(NamedTuple):
    """Newest first: at most `limit` jobs submitted before the job `before`."""

    limit: int = 50
    before: JobId | None = None


class SearchPage(NamedTuple):
    """A part of what was looked for, newest first; it may be empty though there is more."""

    jobs: list[Job]
    rest: JobId | None
    """Look for those before this one to go on; None when there are no more."""


class DeadGroup(NamedTuple):
    """Dead letters of one tenant with the same error."""

    oldest: JobId
    """By submission, as is the newest."""
    newest: JobId
    tenant: str
    error: str
    jobs: int
    """No more than was asked to count."""


class Count(NamedTuple):
    """How many jobs stand where."""

    tenant: str
    queue: str
    type: str
    status: Status
    jobs: int


class UniqueSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """One such job at a time: the same as far as `by` tells."""

    by: tuple[str, ...] = ("payload",)
    within: Duration = Duration(0)
    on_conflict: OnConflict = "return"


class JobSpec(Struct, frozen=True):
    """A job as somebody asks for it, before it is checked."""

    type: str
    payload: Any = None
    tenant: str = "default"
    queue: str = "default"
    priority: int = 0
    scheduled_at: Instant | None = None
    delay: Duration | None = None
    max_attempts: int | None = None
    timeout: Duration | None = None
    retry: RetryRule | None = None
    cost: int = 1
    tags: tuple[str, ...] = ()
    unique: UniqueSpec | None = None
    deadline: Instant | None = None
    concurrency_key: str | None = None
    idempotency_key: str | None = None
