"""What the clients give back: the answers of a node as values, with times as `datetime` and JSON as Python has it."""

from datetime import datetime
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from holdfast.model.state import Status
from holdfast.wire.analytics import NamedCounts, Percentiles, Rates, StatusCounts, Totals

T = TypeVar("T")


class Error(Struct, frozen=True):
    """What an attempt failed with."""

    kind: str
    message: str
    fingerprint: str = ""
    traceback: str | None = None


class Progress(Struct, frozen=True):
    """How far a job is, as its handler tells."""

    fraction: float | None = None
    note: str | None = None


class Job(Struct, frozen=True):
    """A job."""

    id: str
    tenant: str
    queue: str
    type: str
    payload: Any
    status: Status
    priority: int
    attempts: int
    max_attempts: int
    scheduled_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    result: Any
    error: Error | None
    reason: str | None
    """Why it was cancelled."""
    progress: Progress | None
    tags: list[str]
    cost: int
    timeout: float | None
    """Seconds."""
    deadline: datetime | None
    concurrency_key: str | None
    idempotency_key: str | None
    generation: int
    """How often it was replayed."""
    worker: str | None
    lease_until: datetime | None
    workflow_id: str | None
    actions: list[str]
    """What may be done with it now: `cancel`, `retry`, `delete`."""


class LogLine(Struct, frozen=True):
    """What a handler wrote into the log of its job."""

    at: datetime
    level: str
    message: str


class Logs(Struct, frozen=True):
    """The newest lines that an attempt logged, oldest first."""

    lines: list[LogLine]
    dropped: int = 0


class Attempt(Struct, frozen=True):
    """An attempt that did not succeed, or that logged something."""

    attempt: int
    generation: int
    worker: str
    started_at: datetime
    ended_at: datetime
    outcome: str
    error: Error | None = None
    logs: Logs | None = None


class Step(Struct, frozen=True):
    """What a step of the job left."""

    key: str
    state: str
    recorded_at: datetime
    result: Any
    transaction: bool


class Lineage(Struct, frozen=True):
    """Where a job comes from."""

    generation: int
    parent_id: str | None = None
    schedule: str | None = None
    workflow_id: str | None = None


class JobDetail(Job, frozen=True):
    """A job and all that is known of it."""

    attempt_log: list[Attempt]
    """Oldest first."""
    steps: list[Step]
    lineage: Lineage


class Receipt(Struct, frozen=True):
    """The answer to one job of a batch: it is durable."""

    id: str
    created_at: datetime
    replayed: bool
    """An earlier submission with the same key made this job; nothing was added."""


class Bulk(Struct, frozen=True):
    """What became of an action on many jobs."""

    matched: int
    changed: int
    dry_run: bool
    next_cursor: str | None = None
    """There are more; the clients follow it by themselves."""


class DeadGroup(Struct, frozen=True):
    """Dead letters of one tenant with the same error."""

    tenant: str
    fingerprint: str
    count: int
    more: bool
    """There are more than were counted."""
    first_at: datetime
    last_at: datetime
    error: Error | None
    newest: Job


class Queue(Struct, frozen=True):
    """A queue, as far as the caller sees."""

    name: str
    paused: bool
    reason: str
    until: datetime | None
    max_running: int | None
    running: int | None
    """How many run, as that limit counts them; None without one, and for who sees one tenant alone."""
    rate: Any
    """Jobs that may start in a time, as it was set; None if there is no such limit."""
    statuses: StatusCounts
    oldest_wait: float | None
    """Seconds that the job has been due that is ready for longest."""
    rates: Rates
    """Over the last five minutes, for each second."""


class Stats(Struct, frozen=True):
    """How many jobs there are."""

    as_of: datetime
    statuses: StatusCounts
    queues: list[NamedCounts]
    types: list[NamedCounts]


class Summary(Struct, frozen=True):
    """What happened in a window, and how long it took."""

    since: datetime
    until: datetime
    totals: Totals
    rates: Rates
    wait: Percentiles
    run: Percentiles
    failure_ratio: float | None


class Worker(Struct, frozen=True):
    """A worker: one incarnation of a process that runs jobs."""

    id: str
    name: str
    host: str | None
    pid: int | None
    version: str
    queues: list[str]
    slots: int
    running: int
    started_at: datetime
    heartbeat_age: float
    """Seconds since it was last heard of."""
    lease_until: datetime
    alive: bool
    node: str | None = None
    """The same for processes that drain together."""
    memory: int | None = None
    """Bytes of main memory; None where it is not known."""
    draining: bool = False
    """It is to end: it claims nothing more."""
    actions: list[str] = field(default_factory=list)
    """What may be asked of it now: `drain`."""


class JobType(Struct, frozen=True):
    """A type of jobs, as whoever handles it tells."""

    type: str
    tenant: str | None
    """Whose workers told it; None: those that serve every tenant."""
    schema: dict[str, Any] | None
    """JSON Schema of the payload."""
    queue: str | None
    queues: list[str]
    """Those that its workers serve, or served last."""
    workers: int
    """How many that are alive handle it."""
    last_seen: datetime
    max_attempts: int | None
    timeout: float | None
    """Seconds."""
    priority: int | None
    cost: int | None


class Tenant(Struct, frozen=True):
    """A tenant. None is the installation's default."""

    name: str
    created_at: datetime
    weight: int | None = None
    rate: int | None = None
    rate_window: float | None = None
    backlog: int | None = None
    queue_backlog: int | None = None


class Key(Struct, frozen=True):
    """A key of the API, without its secret."""

    id: str
    tenant: str
    name: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewKey(Key, frozen=True):
    """A key that was made: the only time that its token is shown."""

    token: str


class Page(Struct, Generic[T], frozen=True):
    """A page of a list. It may hold fewer than asked for, even none: go on while there is a `next_cursor`."""

    items: list[T] = field(default_factory=list)
    next_cursor: str | None = None


class Groups(Struct, frozen=True):
    """A page of groups."""

    groups: list[DeadGroup]
    next_cursor: str | None = None


class Event(NamedTuple):
    """What a stream tells."""

    kind: str
    """`job`, `jobs` (so many that they are counted), `worker`, or `reset`: fetch anew what you show."""
    data: dict[str, Any]
    id: str
    """To resume after it."""
