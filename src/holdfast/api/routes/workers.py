"""Routes for workers, draining them, and the job types they handle."""

import re

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.render.workers import render_types, render_workers
from holdfast.api.routing import Route, RouteCall
from holdfast.errors import NotFound
from holdfast.model.access import Scope
from holdfast.policy.access import visible_tenant
from holdfast.wire.worker_protocol_codec import worker_id
from holdfast.wire.workers import (
    DrainOut,
    TypePage,
    TypesQuery,
    WorkerPage,
    WorkerQuery,
    read_type_cursor,
    read_worker_cursor,
    worker_cursor,
)

_WORKER = re.compile(r"w-[0-3][0-9a-f]{15}")


async def list_workers(call: RouteCall[None, WorkerQuery]) -> HttpResponse | Stream:
    """List registered workers, oldest first."""
    query, engine = call.query, call.service.engine
    after = read_worker_cursor(query.cursor)
    now, (rows, more) = await engine.workers.page(visible_tenant(call.caller, None), after, query.limit)
    items = render_workers(rows, now, await engine.analytics.held_counts(), call.caller)
    return HttpResponse(WorkerPage(items, worker_cursor(rows[-1].started_at, rows[-1].info.id) if more else None))


async def drain_worker(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Drain a worker and the other processes of its node: they finish their jobs and exit."""
    name = call.path["id"]
    if not _WORKER.fullmatch(name):
        raise NotFound(f"there is no worker {name[:40]!r}: GET /v1/workers lists them")
    now, rows = await call.service.engine.workers.drain(worker_id(name))
    holdings = await call.service.engine.analytics.held_counts()
    return HttpResponse(DrainOut(render_workers(rows, now, holdings, call.caller)))


async def list_types(call: RouteCall[None, TypesQuery]) -> HttpResponse | Stream:
    """List the job types that workers handle, with their schemas."""
    query = call.query
    tenant, after = visible_tenant(call.caller, query.tenant), read_type_cursor(query.cursor)
    return HttpResponse(render_types(await call.service.engine.workers.types(tenant, after, query.limit)))


ROUTES = (
    Route(
        "GET", "/v1/workers", Scope.READ, list_workers, "List workers, oldest first", {200: WorkerPage},
        query=WorkerQuery, tag="workers",
    ),
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
