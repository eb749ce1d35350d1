"""Routes of queues."""

from msgspec import UNSET, UnsetType

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.offload import call_with_rows
from holdfast.api.render.queues import render_queues
from holdfast.api.routing import Route, RouteCall
from holdfast.engine.engine import Engine
from holdfast.model.access import Scope
from holdfast.model.limit import LimitKind, queue_limit
from holdfast.model.time import seconds
from holdfast.policy.access import visible_tenant
from holdfast.policy.queues import PauseChange
from holdfast.wire import codec
from holdfast.wire import json as strict
from holdfast.wire.analytics import ChangeQueue, NameQuery, QueueList, QueueOut
from holdfast.wire.limits import rate_of
from holdfast.wire.name_cursors import read_name_cursor
from holdfast.wire.types import Name

RECENT = seconds(300)
DAY = seconds(86_400)


async def list_queues(call: RouteCall[None, NameQuery]) -> HttpResponse | Stream:
    """List the queues that the caller may see, by name."""
    query, tenant = call.query, visible_tenant(call.caller, call.query.tenant)
    return HttpResponse(
        await _queues(call.service.engine, tenant, after=read_name_cursor(query.cursor), limit=query.limit)
    )


async def change_queue(call: RouteCall[ChangeQueue, None]) -> HttpResponse | Stream:
    """Pause, resume or limit a queue."""
    name, body, engine, by = strict.convert(call.path["name"], Name), call.body, call.service.engine, call.caller.name
    rate = UNSET if isinstance(body.rate, UnsetType) else rate_of(body.rate)
    until = UNSET if isinstance(body.until, UnsetType) else codec.instant(body.until)
    await engine.queues.change(name, PauseChange(body.paused, body.reason, until), by=by)
    await engine.limits.change(queue_limit(name), max_running=body.max_running, rate=rate, by=by)
    return HttpResponse((await _queues(engine, None, only=name, limit=1)).items[0])


async def _queues(
    engine: Engine, tenant: str | None, *, after: str = "", limit: int, only: str | None = None
) -> QueueList:
    now, configured = await engine.queues.all()
    census = await engine.analytics.census()
    recent, day = await engine.analytics.window(tenant, RECENT), await engine.analytics.window(tenant, DAY)
    _, limits = await engine.limits.all(LimitKind.QUEUE)
    rows = len(census.status_counts) + len(day.stats)
    sources = (now, configured, census, recent, day.stats, limits)
    return await call_with_rows(rows, render_queues, *sources, tenant=tenant, after=after, limit=limit, only=only)


ROUTES = (
    Route(
        "GET", "/v1/queues", Scope.READ, list_queues, "List queues with depth, oldest wait and rates", {200: QueueList},
        query=NameQuery, tag="queues",
    ),
    Route(
        "PATCH", "/v1/queues/{name}", Scope.ADMIN, change_queue, "Pause, resume or limit a queue", {200: QueueOut},
        ChangeQueue, tag="queues",
    ),
)  # fmt: skip
