"""The shapes of figures: counts, rates, percentiles and queues."""

from typing import Annotated, Generic

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.wire.limits import MaxRunning, RateOut, RateShape
from holdfast.wire.types import RequestBody, TimeT, When


class StatusCounts(Struct):
    """How many jobs stand in which state. Those that ended well or were cancelled: in the last 24 hours."""

    blocked: int = 0
    scheduled: int = 0
    ready: int = 0
    running: int = 0
    retrying: int = 0
    succeeded: int = 0
    dead: int = 0
    cancelled: int = 0


class NamedCounts(Struct, frozen=True):
    """The same for one queue or one type."""

    name: str
    statuses: StatusCounts


class StatsFields(Struct, Generic[TimeT], frozen=True):
    """Fields of the job counts."""

    as_of: TimeT
    statuses: StatusCounts
    queues: list[NamedCounts]
    types: list[NamedCounts]


class Stats(StatsFields[str], frozen=True):
    """Numbers of jobs. With hundreds of thousands of unfinished jobs, they are some seconds old: see `as_of`."""


class Percentiles(Struct, frozen=True):
    """Seconds, off by a tenth at the most; null where nothing ended."""

    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None


class Rates(Struct, frozen=True):
    """How many each second."""

    submitted: float
    started: float
    finished: float
    failed: float


class Totals(Struct, frozen=True):
    """What happened."""

    submitted: int
    started: int
    succeeded: int
    failed: int
    """Attempts that failed."""
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


class Summary(SummaryFields[str], frozen=True):
    """Totals, rates and durations of a window."""


class Point(Struct, frozen=True):
    """What happened in one step of a window, that begins at `at`, and how long it took."""

    at: str
    totals: Totals
    wait: Percentiles
    run: Percentiles


class Series(Struct, frozen=True):
    """A window step by step, without gaps."""

    since: str
    until: str
    step: float
    """Seconds."""
    points: list[Point]


class TypeFigures(Struct, frozen=True):
    """The figures of one type of jobs."""

    type: str
    totals: Totals
    rates: Rates
    wait: Percentiles
    run: Percentiles
    failure_ratio: float | None


class TypeList(Struct, frozen=True):
    """All types of which something happened in a window, the busiest first."""

    since: str
    until: str
    items: list[TypeFigures]


class TenantShareOut(Struct, frozen=True):
    """What one tenant received of all that was served, against what it was entitled to."""

    tenant: str
    weight: int
    received: int
    """Cost of its attempts that ended."""
    entitled: float
    """Cost: its weight's part among those who had jobs waiting; of who had none, what it received."""
    received_share: float
    """The part of all, from 0 to 1."""
    entitled_share: float
    ratio: float | None
    """Received for each unit entitled to; null if it was entitled to nothing."""
    backlogged: float
    """The part of the steps in which it had jobs that waited for their turn."""


class FairnessOut(Struct, frozen=True):
    """Who received what in a window, those first that are furthest below what they were entitled to."""

    since: str
    until: str
    step: float
    """Seconds: entitlement is reckoned for each step."""
    served: int
    """Cost of all attempts that ended."""
    jain: float | None
    """Jain's index of the ratios of tenants that had jobs waiting: 1 is fair; null if none had."""
    tenants: int
    """How many there are; at most 500 are named."""
    items: list[TenantShareOut]


class QueueFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a queue."""

    name: str
    paused: bool
    reason: str
    until: TimeT | None
    max_running: int | None
    """Maximum number of its jobs that run at the same time; null without a limit."""
    running: int | None
    """Running jobs that count against `max_running`; null without a limit, and for callers who see one tenant only."""
    rate: RateOut | None
    """Maximum rate of starts."""
    statuses: StatusCounts
    oldest_wait: float | None
    """Seconds since the oldest ready job became due; null if no job is ready."""
    rates: Rates
    """Per second, over the last five minutes."""


class QueueOut(QueueFields[str], frozen=True):
    """A queue. Numbers cover the caller's own jobs; for administrators, all jobs."""


class QueueList(Struct, frozen=True):
    """All queues in which the caller sees something."""

    as_of: str
    items: list[QueueOut]
    next_cursor: None = None


class ChangeQueue(RequestBody):
    """What to change; what is left out stays as it is."""

    paused: bool | UnsetType = UNSET
    reason: Annotated[str, Meta(max_length=500)] | UnsetType = UNSET
    until: When | UnsetType | None = UNSET
    max_running: MaxRunning | UnsetType | None = UNSET
    rate: RateShape | UnsetType | None = UNSET
