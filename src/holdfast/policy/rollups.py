"""From rows of the feed to figures: counted by minute and hour, added up, and read as rates and percentiles."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from holdfast.model.change_log import GROWTH, ChangeEntry, ChangeGroup, Histogram, merged
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant, seconds

MINUTE, HOUR, DAY = seconds(60), seconds(3_600), seconds(86_400)
MINUTES_RETENTION = Duration(3 * HOUR)
HOURS_RETENTION = Duration(90 * DAY)
"""Of days as well."""

MAX_HOURLY_WINDOW = Duration(7 * DAY)
"""The longest window that is told by hours: longer ones are told by days."""

SETTLED_AFTER = Duration(10 * MINUTE)
"""How long after its end a minute is added to its hour and its day: nothing of it appears any more by then."""

EVERYBODY = ""
"""The tenant of figures for all tenants together."""


class SeriesKey(NamedTuple):
    """What figures are of: one tenant's jobs of one type in one queue, in the minute or hour that begins at `at`."""

    tenant: str
    at: Instant
    queue: str
    type: str


class JobStats(Struct, gc=False):
    """What happened, and how long attempts that ended had waited and run."""

    submitted: int = 0
    started: int = 0
    succeeded: int = 0
    failed: int = 0
    """Attempts that failed, the last ones of jobs that are dead now included."""
    dead: int = 0
    cancelled: int = 0
    wait: Histogram = {}
    run: Histogram = {}
    cost: int = 0
    """Of attempts that ended, together."""
    waited: int = 0
    """The longest wait of an attempt that ended, in microseconds."""
    reaped: int = 0
    """Jobs that were taken back from a worker whose lease ran out."""

    def add(self, other: "JobStats") -> None:
        """Add these."""
        self.submitted += other.submitted
        self.started += other.started
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.dead += other.dead
        self.cancelled += other.cancelled
        merged(self.wait, other.wait)
        merged(self.run, other.run)
        self.cost += other.cost
        self.waited = max(self.waited, other.waited)
        self.reaped += other.reaped

    @property
    def finished(self) -> int:
        """Jobs that reached an end."""
        return self.succeeded + self.dead + self.cancelled

    @property
    def failure_ratio(self) -> float | None:
        """The part of attempts that failed, of those that succeeded or failed; None if there were none."""
        tries = self.succeeded + self.failed
        return self.failed / tries if tries else None


StatsByKey = dict[SeriesKey, JobStats]


def floor(at: Instant, span: Duration) -> Instant:
    """The beginning of the minute or hour."""
    return Instant(at - at % span)


class RollupBuilder:
    """Rows of the feed counted by minute: for each tenant and for all of them together, or for `only` one of these."""

    def __init__(self, only: str | None = None) -> None:
        self._only = only
        self._figures: dict[tuple[str, Instant, str, str], JobStats] = {}

    def add_entries(self, entries: Iterable[ChangeEntry]) -> None:
        """Count these as well."""
        only, known = self._only, self._figures
        for entry in entries:
            at, new = floor(entry.at, MINUTE), entry.body.new
            for group in entry.body.groups():  # as many as there are tenants in a row: little is made here
                if only and group.tenant != only:
                    continue
                place = (group.tenant if only is None else only, at, group.queue, group.type)
                figures = known.get(place)
                if figures is None:
                    figures = known[place] = JobStats()
                _take_in(figures, group, new=new)

    def counted(self) -> StatsByKey:
        """All of it."""
        counted = {SeriesKey(*place): figures for place, figures in self._figures.items()}
        everybody: StatsByKey = {}
        if self._only is None:
            for place, figures in counted.items():
                _at(everybody, SeriesKey(EVERYBODY, *place[1:])).add(figures)
        return counted | everybody


def count(entries: Iterable[ChangeEntry], only: str | None = None) -> StatsByKey:
    """Rows of the feed, as a `RollupBuilder` counts them."""
    tally = RollupBuilder(only)
    tally.add_entries(entries)
    return tally.counted()


def downsample(minutes: StatsByKey, span: Duration) -> StatsByKey:
    """Minutes as hours or days."""
    counted: StatsByKey = {}
    for place, figures in minutes.items():
        _at(counted, place._replace(at=floor(place.at, span))).add(figures)
    return counted


def step_of(window: Duration) -> Duration:
    """In which steps a window is told."""
    return MINUTE if window <= MINUTES_RETENTION else HOUR if window <= MAX_HOURLY_WINDOW else DAY


def add(into: StatsByKey, more: StatsByKey) -> StatsByKey:
    """Both together: `into`, with `more` added."""
    for place, figures in more.items():
        _at(into, place).add(figures)
    return into


def total(counted: Iterable[JobStats]) -> JobStats:
    """All of them as one."""
    whole = JobStats()
    for figures in counted:
        whole.add(figures)
    return whole


def quantile(histogram: Histogram, part: float) -> Duration | None:
    """The span below which this part of all lies, off by a tenth at the most; None of nothing."""
    wanted = part * sum(histogram.values())
    reached = 0
    for bucket in sorted(histogram):
        reached += histogram[bucket]
        if reached >= wanted and reached:
            # The middle that is off by the same ratio from both ends of the bucket.
            return Duration(round(GROWTH**bucket * 2 * GROWTH / (GROWTH + 1)) if bucket else 1)
    return None


def _at(counted: StatsByKey, place: SeriesKey) -> JobStats:
    found = counted.get(place)
    if found is None:
        found = counted[place] = JobStats()
    return found


_STARTED, _SUCCEEDED = Status.RUNNING.code, Status.SUCCEEDED.code
_DEAD, _CANCELLED = Status.DEAD.code, Status.CANCELLED.code


def _take_in(figures: JobStats, group: ChangeGroup, *, new: bool) -> None:
    """Add what a row of the feed tells of one kind of job."""
    status = group.status
    if new:
        figures.submitted += group.jobs
    elif status == _STARTED:
        figures.started += group.jobs
    elif status == _SUCCEEDED:
        figures.succeeded += group.jobs
    elif status == _DEAD:
        figures.dead += group.jobs
    elif status == _CANCELLED:
        figures.cancelled += group.jobs
    if group.wait or group.cost or group.failed or group.reaped:  # attempts ended
        figures.failed += group.failed
        merged(figures.wait, group.wait)
        merged(figures.run, group.run)
        figures.cost += group.cost
        figures.waited = max(figures.waited, group.waited)
        figures.reaped += group.reaped
