"""How many jobs there are, what happened to them and how long it took."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Literal

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import Route, RouteCall
from holdfast.engine.changes.analytics import Window, rate
from holdfast.errors import Invalid
from holdfast.model.access import Scope
from holdfast.model.change_log import Histogram
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339, seconds
from holdfast.policy import rollups
from holdfast.policy.access import visible_tenant
from holdfast.policy.rollups import JobStats, SeriesKey, quantile
from holdfast.store.port.change_log import Standing
from holdfast.wire import codec
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
    TypeFigures,
    TypeList,
)
from holdfast.wire.types import Name, Query, Seconds

DAY = seconds(86_400)
MIN_WINDOW, MAX_WINDOW = seconds(60), Duration(90 * DAY)
MAX_FAIRNESS_WINDOW = Duration(7 * DAY)
_MAX_TYPES = 500
_MAX_TENANTS = 500


class StatsQuery(Query):
    """Whose."""

    tenant: Name | None = None


class WindowQuery(Query):
    """Over which window, and of what."""

    window: Seconds = "1h"
    queue: Name | None = None
    type: Name | None = None
    tenant: Name | None = None


class FairnessQuery(Query):
    """Over which window."""

    window: Seconds = "15m"


async def stats(call: RouteCall[None, StatsQuery]) -> HttpResponse | Stream:
    """Counts by state, queue and type."""
    tenant = visible_tenant(call.caller, call.query.tenant)
    analytics = call.service.engine.analytics
    census = await analytics.census()
    ended = (await analytics.window(tenant, DAY)).stats
    standings = census.of(tenant)
    return HttpResponse(
        Stats(
            rfc3339(census.at),
            counts(standings, ended.items()),
            _named("queue", standings, ended),
            _named("type", standings, ended),
        )
    )


async def summary(call: RouteCall[None, WindowQuery]) -> HttpResponse | Stream:
    """What happened in a window."""
    window = await _window(call)
    whole = rollups.total(window.stats.values())
    return HttpResponse(
        Summary(
            rfc3339(window.since),
            rfc3339(window.until),
            _totals(whole),
            rates(whole, window.span),
            _percentiles(whole.wait),
            _percentiles(whole.run),
            whole.failure_ratio,
        )
    )


async def throughput(call: RouteCall[None, WindowQuery]) -> HttpResponse | Stream:
    """A window step by step."""
    window = await _window(call)
    points: dict[Instant, JobStats] = defaultdict(JobStats)
    for place, figures in window.stats.items():
        points[place.at].add(figures)
    steps = range(window.since, window.until + 1, window.step)
    found = [_point(Instant(at), points.get(Instant(at), JobStats())) for at in steps]
    return HttpResponse(Series(rfc3339(window.since), rfc3339(window.until), in_seconds(window.step), found))


def _point(at: Instant, figures: JobStats) -> Point:
    return Point(rfc3339(at), _totals(figures), _percentiles(figures.wait), _percentiles(figures.run))


async def types(call: RouteCall[None, WindowQuery]) -> HttpResponse | Stream:
    """Each type of jobs."""
    window = await _window(call)
    by_type: dict[str, JobStats] = defaultdict(JobStats)
    for place, figures in window.stats.items():
        by_type[place.type].add(figures)
    busiest = sorted(by_type.items(), key=lambda each: (-each[1].started, -each[1].submitted, each[0]))
    items = [
        TypeFigures(
            name,
            _totals(each),
            rates(each, window.span),
            _percentiles(each.wait),
            _percentiles(each.run),
            each.failure_ratio,
        )
        for name, each in busiest[:_MAX_TYPES]
    ]
    return HttpResponse(TypeList(rfc3339(window.since), rfc3339(window.until), items))


async def fairness(call: RouteCall[None, FairnessQuery]) -> HttpResponse | Stream:
    """Who received what, against what they were entitled to."""
    span = codec.span(call.query.window, "/window")
    if span is None or not MIN_WINDOW <= span <= MAX_FAIRNESS_WINDOW:
        raise Invalid("window: give a length of time from '1m' to '7d'", pointer="/window")
    shares = await call.service.engine.analytics.fairness(span)
    found = shares.fairness
    steps = len(range(shares.since, shares.until + 1, shares.step))
    items = [
        TenantShareOut(
            each.tenant,
            each.weight,
            each.received,
            each.entitled,
            each.received / found.served if found.served else 0.0,
            each.entitled / found.served if found.served else 0.0,
            each.ratio,
            min(1.0, each.backlogged / steps),
        )
        for each in found.tenants[:_MAX_TENANTS]
    ]
    return HttpResponse(
        FairnessOut(
            rfc3339(shares.since),
            rfc3339(shares.until),
            in_seconds(shares.step),
            found.served,
            found.jain,
            len(found.tenants),
            items,
        )
    )


def counts(standings: Iterable[Standing], ended: Iterable[tuple[SeriesKey, JobStats]]) -> StatusCounts:
    """Counts by state, of what stands somewhere and of what has ended."""
    found = StatusCounts()
    for each in standings:
        setattr(found, each.status.value, getattr(found, each.status.value) + each.jobs)
    for _, figures in ended:
        found.succeeded += figures.succeeded
        found.cancelled += figures.cancelled
    return found


def rates(figures: JobStats, span: Duration) -> Rates:
    """What happened, for each second."""
    return Rates(
        rate(figures.submitted, span),
        rate(figures.started, span),
        rate(figures.finished, span),
        rate(figures.failed, span),
    )


def _named(by: Literal["queue", "type"], standings: Iterable[Standing], ended: rollups.StatsByKey) -> list[NamedCounts]:
    standing: dict[str, list[Standing]] = defaultdict(list)
    for each in standings:
        standing[getattr(each, by)].append(each)
    happened: dict[str, list[tuple[SeriesKey, JobStats]]] = defaultdict(list)
    for place, figures in ended.items():
        happened[getattr(place, by)].append((place, figures))
    return [NamedCounts(name, counts(standing[name], happened[name])) for name in sorted({*standing, *happened})]


async def _window(call: RouteCall[None, WindowQuery]) -> Window:
    asked = call.query
    span = codec.span(asked.window, "/window")
    if span is None or not MIN_WINDOW <= span <= MAX_WINDOW:
        raise Invalid("window: give a length of time from '1m' to '90d'", pointer="/window")
    window = await call.service.engine.analytics.window(visible_tenant(call.caller, asked.tenant), span)
    stats = {
        place: figures
        for place, figures in window.stats.items()
        if asked.queue in (None, place.queue) and asked.type in (None, place.type)
    }
    return window._replace(stats=stats)


def _totals(f: JobStats) -> Totals:
    return Totals(f.submitted, f.started, f.succeeded, f.failed, f.dead, f.cancelled)


def _percentiles(histogram: Histogram) -> Percentiles:
    found = [quantile(histogram, part) for part in (0.5, 0.9, 0.95, 0.99)]
    return Percentiles(*[None if each is None else in_seconds(each) for each in found])


ROUTES = (
    Route(
        "GET", "/v1/stats", Scope.READ, stats, "How many jobs there are", {200: Stats}, query=StatsQuery, tag="figures"
    ),
    Route(
        "GET", "/v1/analytics", Scope.READ, summary, "What happened, and how long it took", {200: Summary},
        query=WindowQuery, tag="figures",
    ),
    Route(
        "GET", "/v1/analytics/throughput", Scope.READ, throughput, "What happened, step by step", {200: Series},
        query=WindowQuery, tag="figures",
    ),
    Route(
        "GET", "/v1/analytics/types", Scope.READ, types, "What happened to each type of jobs", {200: TypeList},
        query=WindowQuery, tag="figures",
    ),
    Route(
        "GET", "/v1/analytics/fairness", Scope.ADMIN, fairness,
        "What tenants received, and what they were entitled to", {200: FairnessOut}, query=FairnessQuery, tag="figures",
    ),
)  # fmt: skip
