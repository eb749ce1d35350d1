"""Routes for concurrency and rate limits, and for paused types and tenants."""

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import Route, RouteCall
from holdfast.errors import Invalid
from holdfast.model.access import Scope
from holdfast.model.limit import Limit, Pause
from holdfast.wire import limits as wire
from holdfast.wire.codec import instant
from holdfast.wire.limits import (
    LimitList,
    LimitOut,
    LimitQuery,
    PauseList,
    PauseOut,
    PauseQuery,
    SetLimit,
    SetPause,
)


async def list_limits(call: RouteCall[None, LimitQuery]) -> HttpResponse | Stream:
    """List the limits that were set, with their current use."""
    now, limits = await call.service.engine.limits.all(wire.kind_of(call.query.kind), tenant=call.query.tenant)
    return HttpResponse(LimitList([wire.limit_out(limit, now) for limit in limits]))


async def set_limit(call: RouteCall[SetLimit, None]) -> HttpResponse | Stream:
    """Set, change or remove a limit."""
    body, limits = call.body, call.service.engine.limits
    name = wire.limit_name(body)
    await limits.set(name, max_running=body.max_running, rate=wire.rate_of(body.rate), by=call.caller.name)
    now, by_name = await limits.named([name])
    return HttpResponse(
        wire.limit_out(by_name.get(name) or Limit(name, changed_at=now, changed_by=call.caller.name), now)
    )


async def list_pauses(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """List paused types and tenants."""
    _, pauses = await call.service.engine.limits.pauses()
    return HttpResponse(PauseList([wire.pause_out(pause) for pause in pauses]))


async def set_pause(call: RouteCall[SetPause, None]) -> HttpResponse | Stream:
    """Pause a type or a tenant."""
    body, limits = call.body, call.service.engine.limits
    kind, name = wire.pause_name(body)
    until = instant(body.until)
    now, _ = await limits.pauses()
    if until is not None and until <= now:
        raise Invalid("until: it is in the past: give a time in the future, or omit it", pointer="/until")
    pause = Pause(kind, name, body.reason, until, changed_by=call.caller.name)
    return HttpResponse(wire.pause_out(await limits.pause(pause)))


async def end_pause(call: RouteCall[None, PauseQuery]) -> HttpResponse | Stream:
    """Resume a paused type or tenant; idempotent."""
    kind, name = wire.pause_name(call.query)
    ended = await call.service.engine.limits.end_pause(kind, name)
    return HttpResponse(None, 204) if ended is None else HttpResponse(wire.pause_out(ended))


ROUTES = (
    Route(
        "GET", "/v1/limits", Scope.ADMIN, list_limits, "List limits and their current use", {200: LimitList},
        query=LimitQuery, tag="limits",
    ),
    Route(
        "PUT", "/v1/limits", Scope.ADMIN, set_limit, "Set the limit of a queue, a tenant or a concurrency key",
        {200: LimitOut}, SetLimit, tag="limits",
    ),
    Route(
        "GET", "/v1/pauses", Scope.ADMIN, list_pauses, "List paused types and tenants", {200: PauseList}, tag="limits"
    ),
    Route(
        "PUT", "/v1/pauses", Scope.ADMIN, set_pause, "Pause a type or a tenant", {200: PauseOut}, SetPause,
        tag="limits",
    ),
    Route(
        "DELETE", "/v1/pauses", Scope.ADMIN, end_pause, "Resume a paused type or tenant", {200: PauseOut, 204: None},
        query=PauseQuery, tag="limits",
    ),
)  # fmt: skip
