"""What the engine asks of a database. A store knows rows and locks; it decides nothing.

One conformance suite is the meaning of this port: every store gives the same answers to the same calls.
All times are the database's, judged inside the statement; the port takes spans.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

from holdfast.model.access import ApiKey, KeyPosition, NewKey, Quotas, Tenant
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Count, DeadGroup, Found, Held, Inserted, Job, JobFilter, NewJob, Page
from holdfast.model.lane import News, Share
from holdfast.model.limit import LimitName
from holdfast.model.step import Step
from holdfast.model.time import Duration, Instant
from holdfast.model.transition import Transition
from holdfast.store.notify.wakeup import Bus
from holdfast.store.port.breakers import Breakers, WebhookSecrets
from holdfast.store.port.change_log import Feed, Queues
from holdfast.store.port.job_types import Types
from holdfast.store.port.limits import Limits
from holdfast.store.port.workers import Fleet

T = TypeVar("T")

NOTHING: Mapping[JobId, JobId] = {}


class Retention(NamedTuple):
    """How long finished things are kept, counted from when they finished."""

    history: Duration
    dead: Duration


class ServerInfo(NamedTuple):
    """What the database is and how it is set up, for people and for `doctor`."""

    name: str
    version: str
    pooled: bool
    listens: bool


class PoolUse(NamedTuple):
    """Connections that are at work, that wait for work, and that there may be together."""

    busy: int
    idle: int
    most: int


class Subscription(Protocol):
    """Wake-ups for one worker. What is heard while nobody waits is kept for the next wait."""

    async def wait(self, timeout: float) -> list[News] | None:
        """Until something may have become ready, or the timeout: then None.

        An empty list means that it is not known where: look at all lanes. A lost wake-up costs the timeout.
        """

    def reset(self) -> None:
        """Work was found: where wake-ups come by polling, poll quickly again."""

    def close(self) -> None:
        """Hear no more; a wait in progress ends."""


class Jobs(Protocol):
    """Jobs, in all their states."""

    async def insert(
        self, jobs: Sequence[NewJob], *, key_retention: Duration, replacing: Mapping[JobId, JobId] = NOTHING
    ) -> list[Inserted]:
        """Insert those that repeat nothing; in the order given.

        A key belongs to its job for `key_retention` (a unique key: for `within`), and as long as that job is
        unfinished. Safe against any number of others inserting the same keys, also if they roll back. No two of
        `jobs` may carry the same key. Of one that repeats a unique job, the idempotency key leads to that job, or is
        free again if it was not content with it.

        `replacing`: jobs that this transaction was asked to insert before, and the earlier ones that it has since
        ended or found gone: the unique keys of these go over to those.
        """

    async def get(self, ids: Collection[JobId]) -> list[Job]:
        """Those that exist, in no order."""

    async def find(self, where: JobFilter, page: Page) -> list[Job]:
        """Newest first, by id: as many as are asked for, if there are, however long it takes."""

    async def seek(self, where: JobFilter, page: Page, *, most: int) -> Found:
        """As `find`, but looks at about `most` rows of each table and then tells where to go on."""

    async def remove(self, jobs: Sequence[Job]) -> set[JobId]:
        """Delete these with all that they recorded, where they still are as they were read; which were.

        Keys stay: they belong to their job for their whole term.
        """

    async def dead_groups(
        self, tenant: str | None, after: tuple[str, str] | None, *, limit: int, most: int
    ) -> list[DeadGroup]:
        """Dead letters by tenant and error, in the order of these, those after `after`; each counted up to `most`."""

    async def lease_until(self, worker: WorkerId) -> Instant | None:
        """Until when a worker's lease runs, or ran; None when it is not registered."""

    async def counts(self, where: JobFilter) -> list[Count]:
        """How many unfinished and dead jobs there are, by tenant, queue, type and status."""

    async def lanes(self, queues: Sequence[str], cap: int) -> list[News]:
        """Lanes with at least one ready job, each with the position of its first; at most `cap` for each queue.

        Cost grows with lanes, not with jobs. A job that a claim is taking at this moment still counts as ready.
        """

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
        """Take ready jobs for a worker whose lease lives, lane by lane in the order given, never over `limit`.

        Raises the fence and counts the attempt of each. Passes by those whose deadline has come. `types`: only those
        (None: any), `without`: none of those. Jobs are marked with those limits of `counting` that they are under: what
        ends them gives back by the marks. Nothing when the lease is gone, and no reap of this worker can slip in
        between.
        """

    async def ahead(self, job: Job, most: int) -> tuple[int, int]:
        """How many ready jobs of its queue and tenant come before a ready one, and what they cost together.

        Exact up to `most` of its own priority and `most` of higher ones; no more than these are looked at.
        """

    async def contenders(self, queue: str, most: int) -> set[str]:
        """Tenants with ready jobs in a queue: of the first so many by name, or all if they are fewer.

        Cost grows with them, not with their jobs.
        """

    async def apply(self, moves: Sequence[Transition], *, ended_at: Instant = Instant(0)) -> set[JobId]:
        """Make these changes where the job still is as it was read; tells which took effect.

        `ended_at`: about when the attempts ended that it settles, for statistics; 0 if that is not known. With
        `claim` and `promote` the only way a job's state changes. No two moves may name the same job.
        """

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """What a worker holds, as the database sees it."""

    async def lost(self, held: Collection[Held]) -> set[JobId]:
        """Those of `held` that this holder does not hold any more."""

    async def promote(self, limit: int) -> int:
        """Make jobs ready whose time has come, oldest first; how many."""

    async def next_due(self) -> Duration | None:
        """How long until the next waiting job is due (0 if one is now), None if none waits."""

    async def overdue(self, limit: int) -> list[Job]:
        """Waiting jobs whose deadline has come, those first that missed it first. Whoever decides on them compares."""

    async def orphans(self, limit: int) -> list[Job]:
        """Running jobs whose worker has no row any more: a net below the reaper, normally empty."""

    async def prune(self, rule: Retention, limit: int) -> int:
        """Remove finished jobs, dead letters and keys past their retention, at most `limit` of each; how many.

        Steps go when their job is gone, wherever it was.
        """


class Steps(Protocol):
    """What attempts leave for the next one. Only who still holds the job, by fence and holder, writes it."""

    async def steps(self, job_id: JobId) -> list[Step]:
        """What was recorded for a job, oldest first."""

    async def record_step(self, held: Held, step: Step) -> bool:
        """Record a step, or that one which was started is done; False when the holder has lost the job.

        What is done stays as it is: recording it again changes nothing and is no error.
        """

    async def save_progress(self, held: Held, progress: bytes) -> bool:
        """Keep how far a job is; False when the holder has lost it."""


class Access(Protocol):
    """Tenants, and the keys of the API."""

    async def add_tenant(self, name: str, quotas: Quotas) -> bool:
        """Enter a tenant; False when it is there already, and then nothing is changed."""

    async def change_tenant(self, name: str, changes: Mapping[str, int | None]) -> bool:
        """Write those fields of its `Quotas` that are given; False when there is no such tenant."""

    async def tenant(self, name: str) -> Tenant | None:
        """What is known of a tenant."""

    async def tenants(self, after: str, limit: int) -> list[Tenant]:
        """Those whose names come after this one, in their order."""

    async def add_key(self, key: NewKey) -> None:
        """Keep a key, whose id nobody has."""

    async def key(self, key_id: str) -> tuple[ApiKey, Instant] | None:
        """A key, good or not, and what time it was when it was read."""

    async def keys(self, tenant: str | None, before: KeyPosition | None, limit: int) -> list[ApiKey]:
        """Keys of a tenant (None: of all), newest first, also those that are good no more."""

    async def revoke_key(self, key_id: str) -> bool:
        """End a key for good; False when there is none. To do it again changes nothing."""

    async def note_key(self, key_id: str, coarse: Duration) -> None:
        """Note that a key is in use, unless that was noted within `coarse`."""

    async def has_good_key(self) -> bool:
        """Whether there is a key that is neither revoked nor expired."""


class Locked(NamedTuple):
    """What is known of a tenant's limits, while nobody else submits for it."""

    state: bytes | None
    """None when there is nothing to lock: begin it, and lock again."""
    quotas: Quotas | None
    """None for a tenant that nobody entered."""
    now: Instant
    """No earlier than when the lock was had."""


class Admission(Protocol):
    """What tenants with limits have submitted, kept as bytes that mean something to whoever decides."""

    async def limited_tenants(self, limit: int) -> list[str]:
        """Those that have a limit of their own, in no order."""

    async def lock_ledger(self, tenant: str) -> Locked:
        """Wait until nobody else submits for a tenant, and keep it so until the commit."""

    async def begin_ledger(self, tenant: str) -> None:
        """Make sure that there is something to lock."""

    async def save_ledger(self, tenant: str, state: bytes) -> None:
        """Keep this, under the lock."""

    async def tenant_backlog(self, tenant: str, most: int) -> int:
        """How many unfinished jobs a tenant has. Exact up to `most`; of more it tells only that they are more."""

    async def queue_backlogs(self, tenant: str, queues: Collection[str], most: int) -> dict[str, int]:
        """The same in each of these queues."""


class Session(Protocol):
    """A transaction for the caller's own statements; its guard row commits with them. One statement at a time."""

    @property
    def recorded(self) -> bytes | None:
        """What the guard holds if it was there: then nothing is to be run, and nothing is locked."""

    async def execute(self, sql: str, *args: Any) -> int:
        """Run one statement, with the driver's placeholders; how many rows it returned or else touched.

        A statement that fails fails the transaction, whatever the caller does about it.
        """

    async def fetch(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        """Run one statement; its rows."""

    def record(self, result: bytes) -> None:
        """What the guard is to hold."""


class Tx(Jobs, Steps, Fleet, Types, Access, Admission, Feed, Queues, Limits, Breakers, WebhookSecrets, Protocol):
    """One transaction: all of its effects, or none."""

    async def now(self) -> Instant:
        """The database's clock."""


Work = Callable[[Tx], Awaitable[T]]


class Store(Protocol):
    """A database with our tables in it. Safe to use by many tasks of one event loop at once."""

    async def run(self, work: Work[T]) -> T:
        """Run `work` in one transaction and commit.

        Deadlocks and serialisation failures run it again from the start, so it may have no effects but through the
        transaction it is given, and may await nothing else. Raises `Unavailable` when the database is away and
        nothing was committed, `OutcomeUnknown` when the connection broke at the commit.
        """

    async def read(self, work: Work[T]) -> T:
        """Run `work`, which only reads, on one snapshot: a job that moves meanwhile is seen once, in one place."""

    async def single(self, work: Work[T]) -> T:
        """As `run`, for work that calls the transaction exactly once; saves round trips where that is one statement."""

    def session(self, held: Held, key: str) -> AbstractAsyncContextManager[Session]:
        """A transaction for the caller's statements: they, the guard (job, key) and the check of the fence are one.

        The job's row is locked from the start, so whoever takes the job away comes before all of it or after it. Raises
        `LeaseLost` when the holder has lost the job, `OutcomeUnknown` when the connection broke at the commit,
        `TransactionEnded` when it was over before the block: it took too long, or a statement failed or ended it.
        """

    @property
    def tells_news(self) -> bool:
        """Whether subscriptions hear of what other processes commit at once and by itself, as things stand."""

    def listen(self, queues: Sequence[str] | None) -> Subscription:
        """Hear of jobs that become ready in these queues (None: in any), from now on."""

    def join(self, bus: Bus) -> None:
        """Have wake-ups told and heard by this bus too, where that is better than what the database has itself."""

    async def installation(self) -> str:
        """What tells this database from every other that is not a copy of it; the same on all nodes."""

    async def migrate(self) -> list[str]:
        """Bring the schema up to this version, safe on many nodes at once; the names of the steps applied."""

    async def check_schema(self) -> None:
        """Raise `SchemaMismatch` unless the schema is the one this version works with."""

    async def tend(self, rule: Retention) -> None:
        """Upkeep of the tables themselves (partitions, vacuum); cheap when there is nothing to do."""

    async def info(self) -> ServerInfo:
        """What server this is."""

    def pool(self) -> PoolUse:
        """How the connections for short work are used now."""

    async def aclose(self) -> None:
        """Close all connections."""
