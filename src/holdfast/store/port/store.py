"""Storage port of the engine. A store handles rows and locks; it makes no decisions.

One conformance suite defines this port: every store returns the same results for the same calls.
Statements use the database clock, so the port takes durations instead of instants.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from holdfast.model.access import ApiKey, KeyPosition, NewApiKey, Quotas, Tenant
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Count, DeadGroup, HeldJob, InsertResult, Job, JobFilter, NewJob, Page, SearchPage
from holdfast.model.lane import LaneReady, Share
from holdfast.model.limit import LimitName
from holdfast.model.step import Step
from holdfast.model.time import Duration, Instant
from holdfast.model.transition import Transition
from holdfast.store.notify.wakeup import Bus
from holdfast.store.port.breakers import BreakerRepository, WebhookSecretRepository
from holdfast.store.port.change_log import ChangeLogRepository, QueueRepository
from holdfast.store.port.job_types import JobTypeRepository
from holdfast.store.port.limits import LimitRepository
from holdfast.store.port.wakeups import Subscription
from holdfast.store.port.workers import WorkerRepository

T = TypeVar("T")

NO_REPLACEMENTS: Mapping[JobId, JobId] = {}
"""Default of `replacing` in `JobRepository.insert`."""


class Retention(NamedTuple):
    """Retention of finished jobs and dead letters, counted from when they finished."""

    history: Duration
    dead: Duration


class ServerInfo(NamedTuple):
    """Name, version and setup of the database server, for display and for `doctor`."""

    name: str
    version: str
    pooled: bool
    """Connections go through a pooler in transaction mode."""
    listens: bool
    """Workers are notified of ready jobs instead of polling for them."""


class PoolUse(NamedTuple):
    """Number of busy and idle connections, and the size of the pool."""

    busy: int
    idle: int
    size: int


class JobRepository(Protocol):
    """Jobs in all states."""

    async def insert(
        self, jobs: Sequence[NewJob], *, key_retention: Duration, replacing: Mapping[JobId, JobId] = NO_REPLACEMENTS
    ) -> list[InsertResult]:
        """Insert the jobs that are not duplicates; return results in the order given.

        A key belongs to its job for `key_retention` (a unique key: for `within`), and at least until that job
        finishes. Safe under concurrent inserts of the same keys, even if they roll back. No two of `jobs` may have the
        same key. If a job duplicates a unique job, its idempotency key points to the existing job; the key is released
        if the job's conflict rule does not accept that.

        Args:
            replacing: maps jobs of an earlier `insert` in this transaction to the jobs they conflicted with, which
                this transaction has since ended or found gone; the unique keys pass to the new jobs.
        """

    async def get(self, ids: Collection[JobId]) -> list[Job]:
        """Return the jobs that exist, in no order."""

    async def find(self, where: JobFilter, page: Page) -> list[Job]:
        """Return up to a page of matching jobs, newest id first; scans as many rows as needed."""

    async def seek(self, where: JobFilter, page: Page, *, max_rows: int) -> SearchPage:
        """Like `find`, but scan about `max_rows` rows of each table; the page says where to resume."""

    async def remove(self, jobs: Sequence[Job]) -> set[JobId]:
        """Delete unchanged jobs with their steps; return the deleted ids.

        Keys stay until they expire.
        """

    async def dead_groups(
        self, tenant: str | None, after: tuple[str, str] | None, *, limit: int, max_count: int
    ) -> list[DeadGroup]:
        """Return groups of dead letters by tenant and error, with sizes counted up to `max_count`."""

    async def lease_until(self, worker: WorkerId) -> Instant | None:
        """Return when a worker's lease expires or expired; None if it is not registered."""

    async def counts(self, where: JobFilter) -> list[Count]:
        """Count unfinished and dead jobs by tenant, queue, type and status."""

    async def lanes(self, queues: Sequence[str], max_lanes: int) -> list[LaneReady]:
        """Return lanes with ready jobs, and their first position; at most `max_lanes` per queue.

        Cost grows with lanes, not with jobs. A job in an uncommitted claim still counts as ready.
        """

    async def ready_queues(self, queues: Sequence[str]) -> set[str]:
        """Return those of these queues that have ready jobs, in one round trip."""

    async def claim(
        self,
        worker: WorkerId,
        shares: Sequence[Share],
        limit: int,
        types: Sequence[str] | None,
        *,
        without: Sequence[str] = (),
        counting: Collection[LimitName] = (),
    ) -> list[Job]:
        """Claim at most `limit` ready jobs for a worker, lane by lane in the order given.

        Increments the fence and the attempts of each job. Skips jobs past their deadline. Returns nothing if the
        worker's lease has expired; the worker cannot be reaped between that check and the claim.

        Args:
            types: claim only these types (None: any).
            without: skip these types.
            counting: limits to count against; each job records which of them apply, so that they are released when
                its run ends.
        """

    async def ahead(self, job: Job, max_count: int) -> tuple[int, int]:
        """Return the number and total cost of ready jobs ahead of this one in its queue and tenant.

        Reads at most `max_count` jobs of the same priority and `max_count` of higher priorities.
        """

    async def ready_tenants(self, queue: str, max_count: int) -> set[str]:
        """Return the first `max_count` tenants, by name, with ready jobs in a queue.

        Cost grows with tenants, not with jobs.
        """

    async def apply(self, transitions: Sequence[Transition], *, ended_at: Instant = Instant(0)) -> set[JobId]:
        """Apply transitions to unchanged jobs; return the ids of those that were applied.

        Besides `claim` and `promote`, the only way to change a job's state. No two transitions may name the same job.

        Args:
            ended_at: approximate end of the settled attempts, for statistics; 0 if unknown.
        """

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """Return the jobs that a worker holds."""

    async def lock_held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """Lock and return jobs that a worker holds; skip those that are locked already."""

    async def held_attempts(self, worker: WorkerId, limit: int) -> list[tuple[JobId, int]]:
        """Return the ids and fences of the jobs that a worker holds, without locks."""

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        """Return the jobs of `held` that their holder no longer holds."""

    async def promote(self, limit: int) -> int:
        """Make due jobs ready, oldest first; return how many."""

    async def next_due(self) -> Duration | None:
        """Return the time until the next scheduled job is due (0 if one is), or None."""

    async def overdue(self, limit: int) -> list[Job]:
        """Return waiting jobs past their deadline, earliest deadline first."""

    async def orphans(self, limit: int) -> list[Job]:
        """Return running jobs whose worker is not registered, so that reaping does not find them."""

    async def prune(self, rule: Retention, limit: int) -> int:
        """Delete jobs, dead letters and keys past retention, at most `limit` each; return how many.

        Also deletes steps whose job no longer exists.
        """


class StepRepository(Protocol):
    """Steps and progress of jobs. Writes are fenced: only the current holder may write."""

    async def steps(self, job_id: JobId) -> list[Step]:
        """Return the steps of a job, oldest first."""

    async def step_page(self, job_id: JobId, after: str, limit: int) -> list[Step]:
        """Return steps of a job by key, those that follow `after`."""

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        """Record a step as started or done; return False if the holder has lost the job.

        Recording a finished step again has no effect.
        """

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        """Save the progress of a job; return False if the holder has lost it."""


class AccessRepository(Protocol):
    """Tenants and API keys."""

    async def add_tenant(self, name: str, quotas: Quotas) -> bool:
        """Create a tenant; return False, without changes, if it exists."""

    async def change_tenant(self, name: str, changes: Mapping[str, int | None]) -> bool:
        """Update the given fields of its `Quotas`; return False if the tenant does not exist."""

    async def tenant(self, name: str) -> Tenant | None:
        """Return a tenant, or None."""

    async def tenants(self, after: str, limit: int) -> list[Tenant]:
        """Return tenants with names greater than `after`, by name."""

    async def add_key(self, key: NewApiKey) -> None:
        """Insert an API key with a new id."""

    async def key(self, key_id: str) -> tuple[ApiKey, Instant] | None:
        """Return an API key, valid or not, and the time of the read."""

    async def keys(self, tenant: str | None, before: KeyPosition | None, limit: int) -> list[ApiKey]:
        """Return API keys of a tenant (None: all), newest first, including invalid ones."""

    async def revoke_key(self, key_id: str) -> bool:
        """Revoke an API key; return False if it does not exist. Idempotent."""

    async def record_key_use(self, key_id: str, precision: Duration) -> None:
        """Set a key's last use to now, unless it was set within `precision`."""

    async def has_valid_key(self) -> bool:
        """Return whether a key exists that is neither revoked nor expired."""


class LockedUsage(NamedTuple):
    """Locked quota usage of a tenant: no other transaction can submit for it."""

    state: bytes | None
    """None if there is no row to lock: call `begin_usage`, then lock again."""
    quotas: Quotas | None
    """None for a tenant that was never created."""
    now: Instant
    """Database time, read after the lock was acquired."""


class QuotaUsageRepository(Protocol):
    """Quota usage of tenants with quotas, stored as bytes that the engine encodes."""

    async def limited_tenants(self, limit: int) -> list[str]:
        """Return the tenants that have a quota, in no order."""

    async def lock_usage(self, tenant: str) -> LockedUsage:
        """Lock the usage of a tenant until the commit; other submissions for it wait."""

    async def begin_usage(self, tenant: str) -> None:
        """Create the usage row of a tenant if it is missing."""

    async def save_usage(self, tenant: str, state: bytes) -> None:
        """Save the usage of a tenant; requires the lock."""

    async def tenant_backlog(self, tenant: str, max_count: int) -> int:
        """Count the unfinished jobs of a tenant, up to `max_count`."""

    async def queue_backlogs(self, tenant: str, queues: Collection[str], max_count: int) -> dict[str, int]:
        """Count the unfinished jobs of a tenant in each queue, up to `max_count`."""


class Session(Protocol):
    """Transaction for the caller's statements; its guard row commits with them."""

    @property
    def recorded(self) -> bytes | None:
        """Result in the guard row if this transaction was committed before; then nothing runs."""

    async def execute(self, sql: str, *args: Any) -> int:
        """Run one statement; return the number of rows returned or changed.

        Placeholders are those of the driver. A failed statement fails the transaction, even if the caller catches
        the error.
        """

    async def fetch(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""

    def record(self, result: bytes) -> None:
        """Set the result to store in the guard row."""


class Tx(
    JobRepository,
    StepRepository,
    WorkerRepository,
    JobTypeRepository,
    AccessRepository,
    QuotaUsageRepository,
    ChangeLogRepository,
    QueueRepository,
    LimitRepository,
    BreakerRepository,
    WebhookSecretRepository,
    Protocol,
):
    """Atomic transaction."""

    async def now(self) -> Instant:
        """Return the database clock."""


Work = Callable[[Tx], Awaitable[T]]


class Store(Protocol):
    """Database with the holdfast schema. Safe for concurrent tasks of one event loop."""

    async def run(self, work: Work[T]) -> T:
        """Run `work` in one transaction and commit.

        Retries from the start after deadlocks and serialization failures, so `work` must have no effects except
        through the transaction, and must await nothing else.

        Raises:
            Unavailable: the database cannot be reached; nothing was committed.
            OutcomeUnknown: the connection broke during the commit.
        """

    async def read(self, work: Work[T]) -> T:
        """Run read-only `work` on one snapshot: a job that changes tables meanwhile is seen once."""

    async def single(self, work: Work[T]) -> T:
        """Like `run`, for work that calls the transaction exactly once; saves round trips."""

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Session]:
        """Open a transaction for the caller's statements, with a guard row and a fence check.

        The job's row is locked from the start, so the job cannot be reassigned before the end.

        Raises:
            LeaseLost: the holder has lost the job.
            OutcomeUnknown: the connection broke during the commit.
            TransactionEnded: the transaction ended before the block: it took too long, or a statement failed or
                ended it.
        """

    @property
    def has_push(self) -> bool:
        """True while commits of other processes are pushed to subscriptions without polling."""

    def listen(self, queues: Sequence[str] | None) -> Subscription:
        """Subscribe to jobs that become ready in these queues (None: all)."""

    def join(self, bus: Bus) -> None:
        """Send and receive wake-ups over this bus too, if it is faster than the database's own way."""

    async def installation(self) -> str:
        """Return an id of this database, the same on all nodes; copies share it."""

    async def migrate(self) -> list[str]:
        """Migrate the schema to this version; return the applied migrations. Safe on many nodes."""

    async def check_schema(self) -> None:
        """Raise `SchemaMismatch` unless the schema matches this version."""

    async def maintain_tables(self, rule: Retention) -> None:
        """Maintain the tables (partitions, vacuum); cheap if nothing is due."""

    async def info(self) -> ServerInfo:
        """Return the server's name and version."""

    def pool(self) -> PoolUse:
        """Return the use of the connection pool for short transactions."""

    async def aclose(self) -> None:
        """Close all connections."""
