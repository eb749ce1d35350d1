"""Routes for workers, draining them, and the job types they handle."""

import re
from collections import defaultdict

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import Route, RouteCall
from holdfast.errors import NotFound
from holdfast.model.access import Scope
from holdfast.model.ids import worker_name
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.model.worker import WorkerRow
from holdfast.policy.access import visible_tenant
from holdfast.policy.nodes import worker_actions
from holdfast.wire import workers as wire
from holdfast.wire.worker_protocol_codec import worker_id
from holdfast.wire.workers import DrainOut, TypePage, TypesQuery, WorkerList, WorkerOut

_WORKER = re.compile(r"w-[0-3][0-9a-f]{15}")


async def list_workers(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """List registered workers."""
    now, rows = await call.service.engine.workers.fleet()
    held = await _held(call)
    admin, tenant = call.caller.is_admin, call.caller.tenant
    items = [
        _worker_out(row, now, running=held[row.info.id], admin=admin)
        for row in rows
        if admin or row.info.tenant in (None, tenant)
    ]
    return HttpResponse(WorkerList(items))


async def drain_worker(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Drain a worker and the other processes of its node: they finish their jobs and exit."""
    name = call.path["id"]
    if not _WORKER.fullmatch(name):
        raise NotFound(f"there is no worker {name[:40]!r}: GET /v1/workers lists them")
    engine = call.service.engine
    now, rows = await engine.workers.drain(worker_id(name))
    held = await _held(call)
    return HttpResponse(DrainOut([_worker_out(row, now, running=held[row.info.id], admin=True) for row in rows]))


async def list_types(call: RouteCall[None, TypesQuery]) -> HttpResponse | Stream:
    """List the job types that workers handle, with their schemas."""
    query, engine = call.query, call.service.engine
    tenant, after = visible_tenant(call.caller, query.tenant), wire.read_type_cursor(query.cursor)
    found = await engine.workers.types(tenant, after, query.limit)
    items = [
        wire.type_out(each.row.tenant, each.row.about, each.queues, workers=len(each.workers), last_seen=each.last_seen)
        for each in found
    ]
    last = found[-1].row if len(found) == query.limit else None
    return HttpResponse(TypePage(items, None if last is None else wire.type_cursor(last.about.type, last.tenant)))


def _worker_out(row: WorkerRow, now: Instant, *, running: int, admin: bool) -> WorkerOut:
    """Render a worker; only administrators see its host."""
    info = row.info
    return WorkerOut(
        id=worker_name(info.id),
        name=info.name if admin else "",
        host=info.host if admin else None,
        pid=info.pid if admin else None,
        node=(info.node or None) if admin else None,
        version=info.version,
        queues=[queue for queue in info.queues.split(",") if queue],
        slots=info.slots,
        running=running,
        memory=row.memory if admin else None,
        started_at=rfc3339(row.started_at),
        heartbeat_age=max(0.0, in_seconds(Duration(now - row.renewed_at))),
        lease_until=rfc3339(row.expires_at),
        alive=row.expires_at > now,
        draining=row.draining,
        actions=list(worker_actions(row, now)) if admin else [],
    )


async def _held(call: RouteCall[None, None]) -> dict[int, int]:
    """Return the number of jobs that each worker holds and the caller may see."""
    held: dict[int, int] = defaultdict(int)
    for holding in await call.service.engine.analytics.holding():
        if call.caller.is_admin or holding.tenant == call.caller.tenant:
            held[holding.worker] += holding.jobs
    return held


ROUTES = (
    Route("GET", "/v1/workers", Scope.READ, list_workers, "List workers", {200: WorkerList}, tag="workers"),
    Route(
        "POST", "/v1/workers/{id}/drain", Scope.ADMIN, drain_worker,
        "Drain a worker and its node: finish running jobs and exit", {200: DrainOut}, tag="workers",
    ),
    Route(
        "GET", "/v1/types", Scope.READ, list_types,
        "List the job types that workers handle, with their payload schemas", {200: TypePage}, query=TypesQuery,
        tag="workers",
    ),
)  # fmt: skip
