"""Render counts, rates, percentiles and fairness."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from holdfast.engine.changes.analytics import Census, FairnessWindow, Window, rate
from holdfast.model.change_log import Histogram
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.policy import rollups
from holdfast.policy.rollups import JobStats, SeriesKey, StatsByKey, quantile
from holdfast.store.port.change_log import StatusCount
from holdfast.wire.analytics import (
    FairnessOut,
    NamedCounts,
    Percentiles,
    Point,
    Rates,
    Series,
    Stats,
    StatusCounts,
    Summary,
    TenantShareOut,
    Totals,
    TypeList,
    TypeStats,
)
from holdfast.wire.name_cursors import name_cursor

_MAX_TYPES = 500
_MAX_TENANTS = 500


def render_stats(census: Census, tenant: str | None, ended: StatsByKey, *, after: str, limit: int) -> Stats:
    """Render the numbers of jobs by status, and by queue and type for the names after `after`.

    Both lists have at most `limit` names and end at the same name, so that one cursor continues both.
    """
    status_counts = census.of(tenant)
    queues = _names_after("queue", after, status_counts, ended)
    types = _names_after("type", after, status_counts, ended)
    last = min((names[limit - 1] for names in (queues, types) if len(names) > limit), default=None)
    shown = [[name for name in names[:limit] if last is None or name <= last] for names in (queues, types)]
    return Stats(
        rfc3339(census.at),
        count_statuses(status_counts, ended.items()),
        _count_by("queue", shown[0], status_counts, ended),
        _count_by("type", shown[1], status_counts, ended),
        None if last is None else name_cursor(last),
    )


def render_summary(window: Window) -> Summary:
    """Render the totals of a window."""
    total = rollups.total(window.stats.values())
    return Summary(
        rfc3339(window.since),
        rfc3339(window.until),
        _totals(total),
        render_rates(total, window.span),
        _percentiles(total.wait),
        _percentiles(total.run),
        total.failure_ratio,
    )


def render_series(window: Window) -> Series:
    """Render a window step by step, without gaps."""
    by_step: dict[Instant, JobStats] = defaultdict(JobStats)
    for key, stats in window.stats.items():
        by_step[key.at].add(stats)
    steps = [Instant(at) for at in range(window.since, window.until + 1, window.step)]
    points = [_point(at, by_step.get(at, JobStats())) for at in steps]
    return Series(rfc3339(window.since), rfc3339(window.until), in_seconds(window.step), points)


def render_types(window: Window) -> TypeList:
    """Render the statistics of each job type, busiest first."""
    by_type: dict[str, JobStats] = defaultdict(JobStats)
    for key, stats in window.stats.items():
        by_type[key.type].add(stats)
    busiest = sorted(by_type.items(), key=lambda item: (-item[1].started, -item[1].submitted, item[0]))
    items = [
        TypeStats(
            name,
            _totals(stats),
            render_rates(stats, window.span),
            _percentiles(stats.wait),
            _percentiles(stats.run),
            stats.failure_ratio,
        )
        for name, stats in busiest[:_MAX_TYPES]
    ]
    return TypeList(rfc3339(window.since), rfc3339(window.until), items)


def render_fairness(window: FairnessWindow) -> FairnessOut:
    """Render the service that tenants received, against their entitlement."""
    fairness = window.fairness
    steps = len(range(window.since, window.until + 1, window.step))
    items = [
        TenantShareOut(
            share.tenant,
            share.weight,
            share.received,
            share.entitled,
            share.received / fairness.served if fairness.served else 0.0,
            share.entitled / fairness.served if fairness.served else 0.0,
            share.ratio,
            min(1.0, share.backlogged / steps),
        )
        for share in fairness.tenants[:_MAX_TENANTS]
    ]
    return FairnessOut(
        rfc3339(window.since),
        rfc3339(window.until),
        in_seconds(window.step),
        fairness.served,
        fairness.jain,
        len(fairness.tenants),
        items,
    )


def count_statuses(status_counts: Iterable[StatusCount], ended: Iterable[tuple[SeriesKey, JobStats]]) -> StatusCounts:
    """Count unfinished and dead jobs by status, and succeeded and cancelled ones of the window."""
    counts = StatusCounts()
    for status_count in status_counts:
        setattr(counts, status_count.status.value, getattr(counts, status_count.status.value) + status_count.jobs)
    for _, stats in ended:
        counts.succeeded += stats.succeeded
        counts.cancelled += stats.cancelled
    return counts


def render_rates(stats: JobStats, span: Duration) -> Rates:
    """Render rates per second."""
    return Rates(
        rate(stats.submitted, span), rate(stats.started, span), rate(stats.finished, span), rate(stats.failed, span)
    )


def _names_after(
    field: Literal["queue", "type"], after: str, status_counts: Iterable[StatusCount], ended: StatsByKey
) -> list[str]:
    """Return the names that follow `after`, sorted."""
    names = {getattr(status_count, field) for status_count in status_counts} | {getattr(key, field) for key in ended}
    return sorted(name for name in names if name > after)


def _count_by(
    field: Literal["queue", "type"], names: Iterable[str], status_counts: Iterable[StatusCount], ended: StatsByKey
) -> list[NamedCounts]:
    current: dict[str, list[StatusCount]] = defaultdict(list)
    for status_count in status_counts:
        current[getattr(status_count, field)].append(status_count)
    finished: dict[str, list[tuple[SeriesKey, JobStats]]] = defaultdict(list)
    for key, stats in ended.items():
        finished[getattr(key, field)].append((key, stats))
    return [NamedCounts(name, count_statuses(current[name], finished[name])) for name in names]


def _point(at: Instant, stats: JobStats) -> Point:
    return Point(rfc3339(at), _totals(stats), _percentiles(stats.wait), _percentiles(stats.run))


def _totals(stats: JobStats) -> Totals:
    return Totals(stats.submitted, stats.started, stats.succeeded, stats.failed, stats.dead, stats.cancelled)


def _percentiles(histogram: Histogram) -> Percentiles:
    durations = [quantile(histogram, fraction) for fraction in (0.5, 0.9, 0.95, 0.99)]
    return Percentiles(*[None if duration is None else in_seconds(duration) for duration in durations])
