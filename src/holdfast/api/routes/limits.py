"""Limits on what runs, and what rests besides queues."""

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import Call, Route
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


async def list_limits(call: Call[None, LimitQuery]) -> HttpResponse | Stream:
    """The limits that somebody set, and how they stand."""
    now, found = await call.service.engine.limits.all(wire.kind_of(call.query.kind), tenant=call.query.tenant)
    return HttpResponse(LimitList([wire.limit_out(each, now) for each in found]))


async def set_limit(call: Call[SetLimit, None]) -> HttpResponse | Stream:
    """Set a limit, change it, or remove it."""
    asked, limits = call.body, call.service.engine.limits
    name = wire.limit_name(asked)
    await limits.set(name, max_running=asked.max_running, rate=wire.rate_of(asked.rate), by=call.caller.name)
    now, found = await limits.named([name])
    return HttpResponse(
        wire.limit_out(found.get(name) or Limit(name, changed_at=now, changed_by=call.caller.name), now)
    )


async def list_pauses(call: Call[None, None]) -> HttpResponse | Stream:
    """Types and tenants that rest."""
    _, found = await call.service.engine.limits.pauses()
    return HttpResponse(PauseList([wire.pause_out(each) for each in found]))


async def set_pause(call: Call[SetPause, None]) -> HttpResponse | Stream:
    """Have a type or a tenant rest."""
    asked, limits = call.body, call.service.engine.limits
    kind, name = wire.pause_name(asked)
    until = instant(asked.until)
    now, _ = await limits.pauses()
    if until is not None and until <= now:
        raise Invalid("until: give a time that is yet to come, or leave it out", pointer="/until")
    pause = Pause(kind, name, asked.reason, until, changed_by=call.caller.name)
    return HttpResponse(wire.pause_out(await limits.pause(pause)))


async def end_pause(call: Call[None, PauseQuery]) -> HttpResponse | Stream:
    """Have a type or a tenant rest no more."""
    kind, name = wire.pause_name(call.query)
    ended = await call.service.engine.limits.end_pause(kind, name)
    return HttpResponse(None, 204) if ended is None else HttpResponse(wire.pause_out(ended))


ROUTES = (
    Route(
        "GET", "/v1/limits", Scope.ADMIN, list_limits, "Limits on what runs, and how they stand", {200: LimitList},
        query=LimitQuery, tag="limits",
    ),
    Route(
        "PUT", "/v1/limits", Scope.ADMIN, set_limit, "Set the limit of a queue, a tenant or a key", {200: LimitOut},
        SetLimit, tag="limits",
    ),
    Route("GET", "/v1/pauses", Scope.ADMIN, list_pauses, "Types and tenants that rest", {200: PauseList}, tag="limits"),
    Route(
        "PUT", "/v1/pauses", Scope.ADMIN, set_pause, "Have a type or a tenant rest", {200: PauseOut}, SetPause,
        tag="limits",
    ),
    Route(
        "DELETE", "/v1/pauses", Scope.ADMIN, end_pause, "Have a type or a tenant rest no more",
        {200: PauseOut, 204: None}, query=PauseQuery, tag="limits",
    ),
)  # fmt: skip
