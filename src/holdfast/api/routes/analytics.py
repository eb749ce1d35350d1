"""Routes of statistics: counts, totals, rates, durations and fairness."""

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.offload import call_with_rows
from holdfast.api.render import analytics as render
from holdfast.api.routing import Route, RouteCall
from holdfast.engine.changes.analytics import Window
from holdfast.model.access import Scope
from holdfast.model.time import seconds
from holdfast.policy.access import visible_tenant
from holdfast.wire import durations
from holdfast.wire.analytics import FairnessOut, NameQuery, Series, Stats, Summary, TypeList
from holdfast.wire.durations import FAIRNESS_WINDOW, WINDOW, FairnessWindow, span
from holdfast.wire.name_cursors import read_name_cursor
from holdfast.wire.types import Name, Query

DAY = seconds(86_400)


class WindowQuery(Query):
    """Window and filter of statistics."""

    window: durations.Window = "1h"
    """Window that ends now."""
    queue: Name | None = None
    type: Name | None = None
    tenant: Name | None = None


class FairnessQuery(Query):
    """Window of the fairness report."""

    window: FairnessWindow = "15m"
    """Window that ends now."""


async def get_stats(call: RouteCall[None, NameQuery]) -> HttpResponse | Stream:
    """Count jobs by status, queue and type."""
    query, analytics = call.query, call.service.engine.analytics
    tenant, after = visible_tenant(call.caller, query.tenant), read_name_cursor(query.cursor)
    census, day = await analytics.census(), await analytics.window(tenant, DAY)
    rows = len(census.status_counts) + len(day.stats)
    return HttpResponse(
        await call_with_rows(rows, render.render_stats, census, tenant, day.stats, after=after, limit=query.limit)
    )


async def get_analytics(call: RouteCall[None, WindowQuery]) -> HttpResponse | Stream:
    """Return the totals of a window."""
    return HttpResponse(render.render_summary(await _window(call)))


async def get_throughput(call: RouteCall[None, WindowQuery]) -> HttpResponse | Stream:
    """Return a window step by step."""
    return HttpResponse(render.render_series(await _window(call)))


async def get_type_analytics(call: RouteCall[None, WindowQuery]) -> HttpResponse | Stream:
    """Return the statistics of each job type."""
    return HttpResponse(render.render_types(await _window(call)))


async def get_fairness(call: RouteCall[None, FairnessQuery]) -> HttpResponse | Stream:
    """Compare the service that tenants received with their entitlement."""
    window = span(call.query.window, "/window", FAIRNESS_WINDOW) or DAY
    return HttpResponse(render.render_fairness(await call.service.engine.analytics.fairness(window)))


async def _window(call: RouteCall[None, WindowQuery]) -> Window:
    query = call.query
    asked = span(query.window, "/window", WINDOW) or DAY
    window = await call.service.engine.analytics.window(visible_tenant(call.caller, query.tenant), asked)
    stats = {
        key: stats
        for key, stats in window.stats.items()
        if query.queue in (None, key.queue) and query.type in (None, key.type)
    }
    return window._replace(stats=stats)


ROUTES = (
    Route(
        "GET", "/v1/stats", Scope.READ, get_stats, "Count jobs by status, queue and type", {200: Stats},
        query=NameQuery,
        tag="analytics",
    ),
    Route(
        "GET", "/v1/analytics", Scope.READ, get_analytics, "Totals, rates and durations of a window", {200: Summary},
        query=WindowQuery, tag="analytics",
    ),
    Route(
        "GET", "/v1/analytics/throughput", Scope.READ, get_throughput, "Totals and durations of a window, step by step",
        {200: Series}, query=WindowQuery, tag="analytics",
    ),
    Route(
        "GET", "/v1/analytics/types", Scope.READ, get_type_analytics, "Totals, rates and durations of each job type",
        {200: TypeList}, query=WindowQuery, tag="analytics",
    ),
    Route(
        "GET", "/v1/analytics/fairness", Scope.ADMIN, get_fairness,
        "Service that tenants received, and their entitlement", {200: FairnessOut}, query=FairnessQuery,
        tag="analytics",
    ),
)  # fmt: skip
