"""Response types of statistics and queues: counts, rates and percentiles."""

from typing import Annotated, Generic

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.wire.limits import MaxRunning, RateOut, RateShape
from holdfast.wire.types import Cursor, Name, Query, RequestBody, Time, TimeT, When

NameLimit = Annotated[int, Meta(ge=1, le=1_000)]
"""Number of queues or types on a page."""


class NameQuery(Query):
    """Filter of the jobs that are counted, and page of the names, which are sorted."""

    tenant: Name | None = None
    cursor: Cursor | None = None
    limit: NameLimit = 500


class StatusCounts(Struct):
    """Numbers of jobs by status; succeeded and cancelled ones of the last 24 hours only."""

    blocked: int = 0
    """Jobs that wait for other jobs."""
    scheduled: int = 0
    """Jobs that are due later."""
    ready: int = 0
    """Jobs that a worker can claim."""
    running: int = 0
    """Jobs that a worker holds."""
    retrying: int = 0
    """Jobs that failed and are due again later."""
    succeeded: int = 0
    """Jobs that succeeded in the last 24 hours."""
    dead: int = 0
    """Jobs that failed permanently."""
    cancelled: int = 0
    """Jobs that were cancelled in the last 24 hours."""


class NamedCounts(Struct, frozen=True):
    """Numbers of jobs of one queue or type."""

    name: str
    """Name of the queue or type."""
    statuses: StatusCounts


class StatsFields(Struct, Generic[TimeT], frozen=True):
    """Fields of the job counts."""

    as_of: TimeT
    statuses: StatusCounts
    queues: list[NamedCounts]
    """Numbers of jobs of each queue on this page."""
    types: list[NamedCounts]
    """Numbers of jobs of each type on this page."""
    next_cursor: str | None
    """Cursor of the next names; null if there are none. `statuses` has all jobs on every page."""


class Stats(StatsFields[Time], frozen=True):
    """Numbers of jobs as of `as_of`, which may be some seconds ago in large installations."""


class Percentiles(Struct, frozen=True):
    """Percentiles in seconds, accurate to 10 %; null if nothing ended."""

    p50: float | None
    """Median."""
    p90: float | None
    """90th percentile."""
    p95: float | None
    """95th percentile."""
    p99: float | None
    """99th percentile."""


class Rates(Struct, frozen=True):
    """Rates per second."""

    submitted: float
    """Submitted jobs."""
    started: float
    """Started attempts."""
    finished: float
    """Jobs that reached a final status."""
    failed: float
    """Failed attempts."""


class Totals(Struct, frozen=True):
    """Numbers of events in a window."""

    submitted: int
    started: int
    succeeded: int
    failed: int
    """Failed attempts."""
    dead: int
    cancelled: int


class SummaryFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a summary."""

    since: TimeT
    until: TimeT
    totals: Totals
    rates: Rates
    wait: Percentiles
    """Time from due to start, per job."""
    run: Percentiles
    """Time from start to end, per attempt."""
    failure_ratio: float | None
    """Fraction of attempts that failed; null if there were none."""


class Summary(SummaryFields[Time], frozen=True):
    """Totals, rates and durations of a window."""


class Point(Struct, frozen=True):
    """Totals and durations of one step of a window."""

    at: Time
    """Start of the step."""
    totals: Totals
    wait: Percentiles
    run: Percentiles


class Series(Struct, frozen=True):
    """Time series of a window, without gaps."""

    since: Time
    until: Time
    step: float
    """Length of a step in seconds."""
    points: list[Point]
    """Steps of the window, oldest first."""


class TypeStats(Struct, frozen=True):
    """Statistics of one job type."""

    type: str
    totals: Totals
    rates: Rates
    wait: Percentiles
    run: Percentiles
    failure_ratio: float | None
    """Fraction of attempts that failed; null if there were none."""


class TypeList(Struct, frozen=True):
    """Job types that were active in a window, busiest first."""

    since: Time
    until: Time
    items: list[TypeStats]


class TenantShareOut(Struct, frozen=True):
    """Service that one tenant received, compared with its entitlement."""

    tenant: str
    """Name of the tenant."""
    weight: int
    received: int
    """Cost of its finished attempts."""
    entitled: float
    """Cost by its weight among backlogged tenants; if it was not backlogged, what it received."""
    received_share: float
    """Fraction of all service, from 0 to 1."""
    entitled_share: float
    """Fraction of all service to which it was entitled."""
    ratio: float | None
    """Received divided by entitled; null if it was entitled to nothing."""
    backlogged: float
    """Fraction of the steps in which it had jobs waiting."""


class FairnessOut(Struct, frozen=True):
    """Service received per tenant in a window, most underserved first."""

    since: Time
    until: Time
    step: float
    """Length of a step in seconds; entitlement is computed per step."""
    served: int
    """Cost of all finished attempts."""
    jain: float | None
    """Jain's index over the ratios of backlogged tenants; 1 is fair, null if there were none."""
    tenants: int
    """Number of tenants; `items` has at most 500."""
    items: list[TenantShareOut]


class QueueFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a queue."""

    name: str
    """Name of the queue."""
    paused: bool
    """True if no more of its jobs are claimed."""
    reason: str
    """Reason of the pause."""
    until: TimeT | None
    """End of the pause; null if it has none."""
    max_running: int | None
    """Maximum number of its jobs that run at the same time; null without a limit."""
    running: int | None
    """Running jobs that count against `max_running`.

    Null without a limit, and for callers who see one tenant only.
    """
    rate: RateOut | None
    """Maximum rate of starts."""
    statuses: StatusCounts
    oldest_wait: float | None
    """Seconds since the oldest ready job became due; null if no job is ready."""
    rates: Rates
    """Per second, over the last five minutes."""


class QueueOut(QueueFields[Time], frozen=True):
    """A queue. Numbers cover the caller's own jobs; for administrators, all jobs."""


class QueueList(Struct, frozen=True):
    """Page of the queues that the caller may see, by name."""

    as_of: Time
    items: list[QueueOut]
    next_cursor: str | None


class ChangeQueue(RequestBody):
    """Change of a queue; omitted fields stay unchanged."""

    paused: bool | UnsetType = UNSET
    """True to pause the queue, false to resume it."""
    reason: Annotated[str, Meta(max_length=500)] | UnsetType = UNSET
    """Reason of the pause."""
    until: When | UnsetType | None = UNSET
    """End of the pause; null for no end."""
    max_running: MaxRunning | UnsetType | None = UNSET
    rate: RateShape | UnsetType | None = UNSET
