"""Statistics from the change log: counts per minute, hour and day, and percentiles."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from holdfast.model.change_log import BUCKET_GROWTH, ChangeEntry, ChangeGroup, Histogram, merge_histogram
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant, seconds

MINUTE, HOUR, DAY = seconds(60), seconds(3_600), seconds(86_400)
MINUTES_RETENTION = Duration(3 * HOUR)
HOURS_RETENTION = Duration(90 * DAY)
"""Retention of hourly and daily rollups."""

MAX_HOURLY_WINDOW = Duration(7 * DAY)
"""Longest window reported in hours; longer ones are reported in days."""

FINAL_AFTER = Duration(10 * MINUTE)
"""Age at which a minute is final, so that it is added to its hour and day."""

ALL_TENANTS = ""
"""Tenant of the statistics of all tenants together."""


class SeriesKey(NamedTuple):
    """Key of one data point: tenant, queue, type, and the start of its minute, hour or day."""

    tenant: str
    at: Instant
    queue: str
    type: str


class JobStats(Struct, gc=False):
    """Counts of job events, and histograms of the wait and run times of finished attempts."""

    submitted: int = 0
    started: int = 0
    succeeded: int = 0
    failed: int = 0
    """Failed attempts, including the last attempts of dead jobs."""
    dead: int = 0
    cancelled: int = 0
    wait: Histogram = {}
    run: Histogram = {}
    cost: int = 0
    """Total cost of finished attempts."""
    waited: int = 0
    """Longest wait of a finished attempt, in microseconds."""
    reaped: int = 0
    """Jobs reclaimed from workers whose lease expired."""

    def add(self, other: "JobStats") -> None:
        """Add the stats of `other` to these."""
        self.submitted += other.submitted
        self.started += other.started
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.dead += other.dead
        self.cancelled += other.cancelled
        merge_histogram(self.wait, other.wait)
        merge_histogram(self.run, other.run)
        self.cost += other.cost
        self.waited = max(self.waited, other.waited)
        self.reaped += other.reaped

    @property
    def finished(self) -> int:
        """Number of jobs that finished."""
        return self.succeeded + self.dead + self.cancelled

    @property
    def failure_ratio(self) -> float | None:
        """Failed attempts divided by attempts that succeeded or failed; None if there were none."""
        attempts = self.succeeded + self.failed
        return self.failed / attempts if attempts else None


StatsByKey = dict[SeriesKey, JobStats]


def floor(at: Instant, span: Duration) -> Instant:
    """Return the start of the minute, hour or day that contains `at`."""
    return Instant(at - at % span)


class RollupBuilder:
    """Counter of change log entries per minute.

    It counts each tenant and all tenants together; with `only`, just that tenant, or `ALL_TENANTS`.
    """

    def __init__(self, only: str | None = None) -> None:
        self._only = only
        self._stats: dict[tuple[str, Instant, str, str], JobStats] = {}

    def add_entries(self, entries: Iterable[ChangeEntry]) -> None:
        """Count these entries."""
        only, known = self._only, self._stats
        for entry in entries:
            at, new = floor(entry.at, MINUTE), entry.body.new
            for group in entry.body.groups():  # hot loop: an entry can have a group for each of thousands of tenants
                if only and group.tenant != only:
                    continue
                key = (group.tenant if only is None else only, at, group.queue, group.type)
                stats = known.get(key)
                if stats is None:
                    stats = known[key] = JobStats()
                _add_group(stats, group, new=new)

    def stats(self) -> StatsByKey:
        """Return the stats of all entries counted so far."""
        by_tenant = {SeriesKey(*key): stats for key, stats in self._stats.items()}
        of_all: StatsByKey = {}
        if self._only is None:
            for key, stats in by_tenant.items():
                _stats_at(of_all, key._replace(tenant=ALL_TENANTS)).add(stats)
        return by_tenant | of_all


def count(entries: Iterable[ChangeEntry], only: str | None = None) -> StatsByKey:
    """Count entries with a `RollupBuilder`."""
    builder = RollupBuilder(only)
    builder.add_entries(entries)
    return builder.stats()


def downsample(minutes: StatsByKey, span: Duration) -> StatsByKey:
    """Sum stats per minute into stats per hour or day."""
    coarse: StatsByKey = {}
    for key, stats in minutes.items():
        _stats_at(coarse, key._replace(at=floor(key.at, span))).add(stats)
    return coarse


def step_of(window: Duration) -> Duration:
    """Return the time step in which a window of this length is reported."""
    return MINUTE if window <= MINUTES_RETENTION else HOUR if window <= MAX_HOURLY_WINDOW else DAY


def add(into: StatsByKey, more: StatsByKey) -> StatsByKey:
    """Add `more` to `into` and return it."""
    for key, stats in more.items():
        _stats_at(into, key).add(stats)
    return into


def total(parts: Iterable[JobStats]) -> JobStats:
    """Return the sum of stats."""
    result = JobStats()
    for stats in parts:
        result.add(stats)
    return result


def quantile(histogram: Histogram, fraction: float) -> Duration | None:
    """Return a quantile with an error of at most 10 %; None for an empty histogram."""
    rank = fraction * sum(histogram.values())
    reached = 0
    for bucket in sorted(histogram):
        reached += histogram[bucket]
        if reached >= rank and reached:
            # Harmonic mean of the bucket's bounds: the relative error is the same at both ends.
            return Duration(round(BUCKET_GROWTH**bucket * 2 * BUCKET_GROWTH / (BUCKET_GROWTH + 1)) if bucket else 1)
    return None


def _stats_at(series: StatsByKey, key: SeriesKey) -> JobStats:
    stats = series.get(key)
    if stats is None:
        stats = series[key] = JobStats()
    return stats


_STARTED, _SUCCEEDED = Status.RUNNING.code, Status.SUCCEEDED.code
_DEAD, _CANCELLED = Status.DEAD.code, Status.CANCELLED.code


def _add_group(stats: JobStats, group: ChangeGroup, *, new: bool) -> None:
    """Add one group of a change log entry."""
    status = group.status
    if new:
        stats.submitted += group.jobs
    elif status == _STARTED:
        stats.started += group.jobs
    elif status == _SUCCEEDED:
        stats.succeeded += group.jobs
    elif status == _DEAD:
        stats.dead += group.jobs
    elif status == _CANCELLED:
        stats.cancelled += group.jobs
    if group.wait or group.cost or group.failed or group.reaped:  # attempts ended
        stats.failed += group.failed
        merge_histogram(stats.wait, group.wait)
        merge_histogram(stats.run, group.run)
        stats.cost += group.cost
        stats.waited = max(stats.waited, group.waited)
        stats.reaped += group.reaped
