"""Jobs as they are submitted, stored and searched."""

import heapq
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from holdfast.model.ids import IdRange, JobId, WorkerId
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant


class RetryRule(Struct, frozen=True, omit_defaults=True):
    """Retry delays: exponential, or an explicit list whose last entry repeats."""

    base: Duration = Duration(1_000_000)
    cap: Duration = Duration(300_000_000)
    jitter: float = 0.2
    delays: tuple[Duration, ...] = ()


OnConflict = Literal["return", "replace", "reject"]
"""Action on a duplicate: return or replace the existing job, or reject the new one."""


class Unique(Struct, frozen=True):
    """Uniqueness of a job until it finishes, and at least for `within` after its submission."""

    key: str
    within: Duration = Duration(0)
    on_conflict: OnConflict = "return"


class UniqueSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """Requested uniqueness: jobs that are equal in all parts named in `by` are duplicates."""

    by: tuple[str, ...] = ("payload",)
    within: Duration = Duration(0)
    on_conflict: OnConflict = "return"


class JobSpec(Struct, frozen=True):
    """Job as submitted, before validation."""

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


class NewJob(Struct, frozen=True):
    """Validated submission, ready to insert."""

    id: JobId
    spec: JobSpec
    payload: bytes
    """Payload of the submission, encoded as JSON."""
    max_attempts: int
    """Value of the submission, or the default of the installation."""
    fingerprint: bytes = b""
    """Hash of the submission; distinguishes a replayed submission from a reused idempotency key."""
    unique: Unique | None = None
    """Uniqueness that the submission asks for, with the key computed from it."""


class InsertResult(NamedTuple):
    """Result of inserting one `NewJob`."""

    id: JobId
    """Id of the new job, or of the existing one."""
    created_at: Instant
    """Time of the insertion, or of the detection of the duplicate."""
    repeats: Literal["idempotency_key", "unique"] | None = None
    """Kind of the key that an existing job has too; None if the job was inserted."""
    same_body: bool = True
    """For a duplicate: True if the earlier submission was identical."""
    holder: Status | None = None
    """Status of the existing job if it could not be replaced."""


class Job(Struct, frozen=True, gc=False):
    """Stored job. `payload`, `result`, `attempt_log` and `progress` are undecoded JSON."""

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
    """JSON array of the attempts that failed or logged something, oldest first."""
    progress: bytes | None = None
    """JSON: latest progress reported by a handler."""
    slots: int = 0
    """While running: bit mask of the limits that count the job."""
    finished_at: Instant | None = None
    result: bytes | None = None
    reason: str | None = None
    fingerprint: str | None = None


class HeldJob(NamedTuple):
    """Reference to a held job; writes apply only while the row has this fence and holder."""

    id: JobId
    fence: int
    worker: WorkerId


class JobFilter(Struct, frozen=True):
    """Filter for jobs; None matches everything."""

    tenant: str | None = None
    status: Status | None = None
    queue: str | None = None
    type: str | None = None
    tag: str | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    error: str | None = None
    """Fingerprint of the last error of a dead job."""
    finished: bool | None = None
    ids: IdRange | None = None


class Page(NamedTuple):
    """Page request, newest first: at most `limit` jobs submitted before `before`."""

    limit: int = 50
    before: JobId | None = None


class SearchPage(NamedTuple):
    """Page of search results, newest first; it may be empty even if there are more."""

    jobs: list[Job]
    cursor: JobId | None
    """Continue the search before this id; None if there are no more."""


def merge_pages(parts: Sequence[SearchPage], limit: int) -> SearchPage:
    """Merge the pages of several searches from the same position into one page."""
    # Drop jobs below the highest id at which a search stopped: that search may have more jobs there.
    reached = max((part.cursor for part in parts if part.cursor is not None), default=None)
    newest_first = heapq.merge(*(part.jobs for part in parts), key=lambda job: job.id, reverse=True)
    jobs = [job for job in newest_first if reached is None or job.id >= reached]
    return SearchPage(jobs[:limit], jobs[limit - 1].id) if len(jobs) > limit else SearchPage(jobs, reached)


class DeadGroup(NamedTuple):
    """Dead letters of one tenant with the same error."""

    oldest: JobId
    """Oldest by submission."""
    newest: JobId
    tenant: str
    error: str
    jobs: int
    """Number of jobs, capped by the maximum of the query."""


class Count(NamedTuple):
    """Number of jobs of one tenant, queue and type in one state."""

    tenant: str
    queue: str
    type: str
    status: Status
    jobs: int
