"""Queues: how deep they are, how fast they move, and whether they rest."""

from collections import defaultdict

from msgspec import UnsetType

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routes.analytics import counts, rates
from holdfast.api.routing import Route, RouteCall
from holdfast.errors import Invalid
from holdfast.model.access import Scope
from holdfast.model.limit import Limit, LimitKind, queue_limit
from holdfast.model.queue import Queue
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339, seconds
from holdfast.policy.access import visible_tenant
from holdfast.policy.rollups import JobStats, SeriesKey
from holdfast.store.port.change_log import Standing
from holdfast.wire import codec
from holdfast.wire import json as strict
from holdfast.wire.analytics import ChangeQueue, QueueList, QueueOut, Rates
from holdfast.wire.limits import rate_of, rate_out
from holdfast.wire.types import Name, Query

RECENT = seconds(300)
DAY = seconds(86_400)


class QueueQuery(Query):
    """Whose jobs are counted."""

    tenant: Name | None = None


async def list_queues(call: RouteCall[None, QueueQuery]) -> HttpResponse | Stream:
    """All queues in which the caller sees something."""
    return HttpResponse(await _queues(call, visible_tenant(call.caller, call.query.tenant)))


async def change_queue(call: RouteCall[ChangeQueue, None]) -> HttpResponse | Stream:
    """Pause a queue, or resume it."""
    name = strict.convert(call.path["name"], Name)
    asked = call.body
    rate_of(asked.rate or None)  # refused before anything is changed
    await _change(call, name, asked)
    await _limit(call, name, asked)
    shown = await _queues(call, None, also=name)
    return HttpResponse(next(queue for queue in shown.items if queue.name == name))


async def _limit(call: RouteCall[ChangeQueue, None], name: str, asked: ChangeQueue) -> None:
    if isinstance(asked.max_running, UnsetType) and isinstance(asked.rate, UnsetType):
        return
    limits = call.service.engine.limits
    of = queue_limit(name)
    before = (await limits.named([of]))[1].get(of, Limit(of))
    most = before.max_running if isinstance(asked.max_running, UnsetType) else asked.max_running
    rate = before.rate if isinstance(asked.rate, UnsetType) else rate_of(asked.rate)
    await limits.set(of, max_running=most, rate=rate, by=call.caller.name)


async def _change(call: RouteCall[ChangeQueue, None], name: str, asked: ChangeQueue) -> None:
    engine, by = call.service.engine, call.caller.name
    now, known = await engine.queues.all()
    before = next((queue for queue in known if queue.name == name), Queue(name))
    paused = (not before.open_at(now)) if isinstance(asked.paused, UnsetType) else asked.paused
    until = before.until if isinstance(asked.until, UnsetType) else codec.instant(asked.until)
    if not paused:
        if not isinstance(asked.until, UnsetType) and asked.until is not None:
            raise Invalid("until: it tells when a pause ends: give it with 'paused': true", pointer="/until")
        if not before.open_at(now) or before.paused:
            await engine.queues.resume(name, by=by)
        return
    if until is not None and until <= now and not isinstance(asked.until, UnsetType):
        raise Invalid("until: give a time that is yet to come, or leave it out", pointer="/until")
    reason = before.reason if isinstance(asked.reason, UnsetType) else asked.reason
    await engine.queues.pause(name, reason=reason, until=until if until is None or until > now else None, by=by)


async def _queues(
    call: RouteCall[ChangeQueue, None] | RouteCall[None, QueueQuery], tenant: str | None, *, also: str | None = None
) -> QueueList:
    engine = call.service.engine
    now, known = await engine.queues.all()
    census = await engine.analytics.census()
    recent = await engine.analytics.window(tenant, RECENT)
    ended = (await engine.analytics.window(tenant, DAY)).stats
    standings: dict[str, list[Standing]] = defaultdict(list)
    for each in census.of(tenant):
        standings[each.queue].append(each)
    happened: dict[str, dict[SeriesKey, JobStats]] = defaultdict(dict)
    for place, figures in ended.items():
        happened[place.queue][place] = figures
    latest: dict[str, JobStats] = defaultdict(JobStats)
    for place, figures in recent.stats.items():
        latest[place.queue].add(figures)
    limits = {limit.of: limit for limit in (await engine.limits.all(LimitKind.QUEUE))[1]}
    by_name = {queue.name: queue for queue in known}
    names = {*standings, *happened, *(by_name if tenant is None else ()), *([] if also is None else [also])}
    items = [
        _shown(
            by_name.get(name, Queue(name)),
            now,
            standings=standings[name],
            ended=happened[name],
            rates=rates(latest[name], recent.span),
            limit=limits.get(queue_limit(name)),
            everybody=tenant is None,
        )
        for name in sorted(names)
    ]
    return QueueList(rfc3339(census.at), items)


def _shown(
    queue: Queue,
    now: Instant,
    *,
    standings: list[Standing],
    ended: dict[SeriesKey, JobStats],
    rates: Rates,
    limit: Limit | None,
    everybody: bool,
) -> QueueOut:
    rests = not queue.open_at(now)
    since = min((each.since for each in standings if each.since is not None), default=None)
    return QueueOut(
        name=queue.name,
        paused=rests,
        reason=queue.reason if rests else "",
        until=rfc3339(queue.until) if rests and queue.until is not None else None,
        max_running=None if limit is None else limit.max_running,
        running=None if limit is None or limit.max_running is None or not everybody else limit.used,
        rate=None if limit is None else rate_out(limit.rate),
        statuses=counts(standings, ended.items()),
        oldest_wait=None if since is None else max(0.0, in_seconds(Duration(now - since))),
        rates=rates,
    )


ROUTES = (
    Route(
        "GET", "/v1/queues", Scope.READ, list_queues, "Queues: depth, oldest wait, rates", {200: QueueList},
        query=QueueQuery, tag="queues",
    ),
    Route(
        "PATCH", "/v1/queues/{name}", Scope.ADMIN, change_queue, "Pause, resume or limit a queue", {200: QueueOut},
        ChangeQueue, tag="queues",
    ),
)  # fmt: skip
