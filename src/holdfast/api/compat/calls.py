"""Handlers of the source systems' calls: read the request, call the engine, render."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from holdfast.api.compat import shapes
from holdfast.api.compat.shapes import JobShape, PageQuery, SourceBatch, SourceJob, Submission
from holdfast.api.http import Chunks, HttpResponse, Stream
from holdfast.api.offload import call_with_rows
from holdfast.api.render.analytics import count_statuses
from holdfast.api.render.jobs import render_job
from holdfast.api.routes import events, jobs
from holdfast.api.routing import Body, QueryT, RouteCall
from holdfast.errors import Invalid, forget_frames
from holdfast.model.job import JobFilter, JobSpec, Page, SearchPage, merge_pages
from holdfast.model.state import Status
from holdfast.model.time import Duration, seconds
from holdfast.policy.access import acting_tenant, visible_tenant
from holdfast.policy.actions import allowed_actions
from holdfast.wire import codec

STATS_WINDOW = Duration(90 * seconds(86_400))
"""Finished jobs of this long are counted: as long as statistics are kept."""

_EVENT_STATUS = re.compile(rb'"status":"([a-z]+)"')


class System(NamedTuple):
    """A source system: how it reads submissions, and how it writes jobs."""

    letter: str
    shape: JobShape
    submission: Submission = Submission()
    receipt: tuple[str, ...] | None = None
    """Fields of the response to a submission besides the id; None for all."""
    list_name: str | None = None
    """Name of the list in a page of jobs; None if the response is the list itself."""


Call = Callable[[System, RouteCall[Any, Any]], Awaitable[HttpResponse | Stream]]


async def submit(system: System, call: RouteCall[SourceJob, None]) -> HttpResponse | Stream:
    """Submit one job."""
    key = call.request.header("idempotency-key")
    spec = shapes.spec_of(call.body, system.submission, tenant=jobs.tenant_of(call), idempotency_key=key)
    job, replayed = await jobs.submit(call, spec)
    return HttpResponse(system.shape.render(job, system.receipt), 200 if replayed else 201)


async def submit_batch(system: System, call: RouteCall[list[SourceJob] | SourceBatch, None]) -> HttpResponse | Stream:
    """Submit many jobs: all of them, or none and an error for every invalid one."""
    batch = call.body.tasks if isinstance(call.body, SourceBatch) else call.body
    specs = await call_with_rows(len(batch), _specs, system.submission, batch, jobs.tenant_of(call))
    receipts = await jobs.submit_specs(call, specs)
    ids = [str(receipt.id) for receipt in receipts]
    return HttpResponse({"count": len(ids), "ids": ids}, 201)


def _specs(rules: Submission, batch: list[SourceJob], tenant: str) -> list[JobSpec | Invalid]:
    specs: list[JobSpec | Invalid] = []
    for job in batch:
        try:
            specs.append(shapes.spec_of(job, rules, tenant=tenant))
        except Invalid as fault:
            forget_frames(fault)
            specs.append(fault)
    return specs


async def get(system: System, call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return a job."""
    job_id = shapes.job_id(call.path["id"])
    detail = await call.service.engine.jobs.detail(job_id, tenant=visible_tenant(call.caller, None))
    job = codec.job_out(
        detail.job, actions=allowed_actions(call.caller, detail.job.status), lease_until=detail.lease_until
    )
    return HttpResponse(system.shape.render(job))


async def cancel(system: System, call: RouteCall[Any, None]) -> HttpResponse | Stream:
    """Cancel a job, even a running one."""
    with_uuid = call._replace(path={"id": str(shapes.job_id(call.path["id"]))})
    await jobs.act(with_uuid, "cancel")
    return await get(system, with_uuid)


async def list_jobs(system: System, call: RouteCall[None, PageQuery]) -> HttpResponse | Stream:
    """List jobs, newest first."""
    status = call.query.status
    return await _list(system, call, () if status is None else system.shape.words.statuses(status))


async def list_failed(system: System, call: RouteCall[None, PageQuery]) -> HttpResponse | Stream:
    """List dead letters, newest first."""
    if call.query.status is not None:
        raise Invalid("status: this list has failed jobs only: leave it out", pointer="/status")
    return await _list(system, call, (Status.DEAD,))


async def _list(system: System, call: RouteCall[None, PageQuery], statuses: tuple[Status, ...]) -> HttpResponse:
    query = call.query
    everyone = query.all is not None or query.tenant is not None
    tenant = visible_tenant(call.caller, query.tenant) if everyone else acting_tenant(call.caller, None)
    where = JobFilter(tenant=tenant, type=query.type)
    filters = [replace(where, status=status) for status in statuses] or [where]

    async def search(page: Page) -> SearchPage:
        return merge_pages([await call.service.engine.jobs.search(each, page) for each in filters], page.limit)

    found = await _skip(search, Page(query.limit, codec.read_cursor(query.cursor)), query.skipped)
    items = [system.shape.render(render_job(job, call.caller)) for job in found.jobs]
    cursor = codec.cursor_of(found.cursor)
    if system.list_name is None:
        return HttpResponse(items, 200, {} if cursor is None else {"next-cursor": cursor})
    return HttpResponse({system.list_name: items, "page": query.page, "limit": query.limit, "next_cursor": cursor})


async def _skip(search: Callable[[Page], Awaitable[SearchPage]], page: Page, skipped: int) -> SearchPage:
    """Return the page after this many jobs."""
    before = page.before
    while skipped:
        part = await search(Page(min(skipped, page.limit), before))
        if part.cursor is None:
            return SearchPage([], None)
        skipped, before = skipped - len(part.jobs), part.cursor
    return await search(Page(page.limit, before))


async def count_by_status(system: System, call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Count jobs by the system's words for their states."""
    tenant, analytics = visible_tenant(call.caller, None), call.service.engine.analytics
    census, window = await analytics.census(), await analytics.window(tenant, STATS_WINDOW)
    counts = count_statuses(census.of(tenant), window.stats.items())
    words = system.shape.words
    totals = dict.fromkeys(sorted(set(words)), 0)
    for status in Status:
        totals[words.of(status)] += getattr(counts, status.value)
    return HttpResponse(totals)


async def health_text(system: System, call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Report as text whether the node can serve requests."""
    del system
    ready = await _is_ready(call)
    return HttpResponse(b"ok" if ready else b"not ready", 200 if ready else 503, {}, "text/plain; charset=utf-8")


async def health_json(system: System, call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Report as JSON whether the node can serve requests."""
    del system
    ready = await _is_ready(call)
    return HttpResponse({"status": "ok" if ready else "not ready"}, 200 if ready else 503)


async def _is_ready(call: RouteCall[None, None]) -> bool:
    return not call.service.stopping.is_set() and all(await call.service.engine.ready())


async def stream_events(system: System, call: RouteCall[None, events.EventQuery]) -> HttpResponse | Stream:
    """Stream changes of jobs and workers as server-sent events."""
    response = await events.stream_events(call)
    if isinstance(response, Stream):
        return response._replace(chunks=_TranslatedEvents(response.chunks, system))
    return response


class _TranslatedEvents(Chunks):
    """Events whose statuses are written in the words of a system.

    Only statuses match: names of tenants, queues and types contain no quotation marks.
    """

    def __init__(self, chunks: Chunks, system: System) -> None:
        self._chunks = chunks
        self._words = system.shape.words

    async def _translated(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield _EVENT_STATUS.sub(lambda match: b'"status":"%b"' % self._words.of(match[1].decode()).encode(), chunk)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._translated()

    async def aclose(self) -> None:
        await self._chunks.aclose()


def from_api(handler: Callable[[RouteCall[Body, QueryT]], Awaitable[HttpResponse | Stream]]) -> Call:
    """Return the call that a handler of the API serves, in the words of the API."""

    async def call_api(system: System, call: RouteCall[Any, Any]) -> HttpResponse | Stream:
        del system
        return await handler(call)

    return call_api
