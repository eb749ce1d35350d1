"""Routes of dead letters: list, group by error, replay and delete."""

from typing import Any, Literal

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.render.jobs import render_bulk_result, render_group, render_job
from holdfast.api.routing import Route, RouteCall
from holdfast.errors import Invalid
from holdfast.model.access import Scope
from holdfast.model.decoded_job import Action
from holdfast.model.job import JobFilter, Page
from holdfast.model.state import Status
from holdfast.policy.access import visible_tenant
from holdfast.policy.actions import bulk_filter
from holdfast.wire import codec
from holdfast.wire.types import MAX_IDS, BulkOut, Cursor, DeadFilter, DeadPage, Limit, ReplayRequest


class DeadQuery(DeadFilter):
    """Filter and page of a list of dead letters."""

    group: Literal["fingerprint"] | None = None
    """Group dead letters with the same error."""
    cursor: Cursor | None = None
    limit: Limit = 50


class PurgeQuery(DeadFilter):
    """Dead letters to delete: by ids, separated by commas, or all that match."""

    ids: str | None = None
    """Ids of the dead letters, separated by commas, instead of a filter."""
    all: bool = False
    """Required if there are no ids and the filter is empty."""
    dry_run: bool = False
    cursor: Cursor | None = None


async def list_dead(call: RouteCall[None, DeadQuery]) -> HttpResponse | Stream:
    """List dead letters, newest first, or groups with the same error."""
    if call.query.group is not None:
        return await _list_groups(call)
    where = codec.filter_of(call.query, tenant=visible_tenant(call.caller, call.query.tenant))
    page = await call.service.engine.jobs.search(where, Page(call.query.limit, codec.read_cursor(call.query.cursor)))
    items = [render_job(job, call.caller) for job in page.jobs]
    return HttpResponse(DeadPage(items=items, next_cursor=codec.cursor_of(page.cursor)))


async def replay_dead(call: RouteCall[ReplayRequest, None]) -> HttpResponse | Stream:
    """Replay dead letters, each as a new generation of the same job."""
    return await _apply(call, "retry", call.body.filter or DeadFilter(), call.body.ids, call.body)


async def purge_dead(call: RouteCall[None, PurgeQuery]) -> HttpResponse | Stream:
    """Delete dead letters permanently."""
    ids = None if call.query.ids is None else call.query.ids.split(",")
    return await _apply(call, "delete", call.query, ids, call.query)


async def _apply(
    call: RouteCall[Any, Any],
    action: Action,
    dead_filter: DeadFilter,
    ids: list[str] | None,
    request: ReplayRequest | PurgeQuery,
) -> HttpResponse | Stream:
    jobs = call.service.engine.jobs
    where = codec.filter_of(dead_filter, tenant=visible_tenant(call.caller, dead_filter.tenant))
    if ids is None:
        matching = bulk_filter(where, action, everything=request.all, implied=frozenset({"tenant", "status"}))
        before = codec.read_cursor(request.cursor)
        result = await jobs.apply_to_matching(action, matching, before=before, dry_run=request.dry_run)
    else:
        if where != JobFilter(tenant=where.tenant, status=Status.DEAD) or request.all or request.cursor is not None:
            raise Invalid("ids: omit the filter, `all` and `cursor` if you give ids", pointer="/ids")
        if len(ids) > MAX_IDS:
            raise Invalid(f"ids: {len(ids):,} are more than {MAX_IDS:,}: send several requests", pointer="/ids")
        result = await jobs.apply_to_ids(action, codec.job_ids(ids), where, dry_run=request.dry_run)
    return HttpResponse(render_bulk_result(result, dry_run=request.dry_run))


async def _list_groups(call: RouteCall[None, DeadQuery]) -> HttpResponse | Stream:
    query = call.query
    for name in ("type", "queue", "tag", "created_after", "created_before", "error"):
        if getattr(query, name) is not None:
            raise Invalid(f"{name}: groups cannot be filtered: omit it, or omit `group`", pointer=f"/{name}")
    tenant, after = visible_tenant(call.caller, query.tenant), codec.read_group_cursor(query.cursor)
    groups, more = await call.service.engine.jobs.dead_groups(tenant, after, limit=query.limit)
    last = groups[-1].group if more else None
    latest_first = sorted(groups, key=lambda group: group.newest.finished_at or 0, reverse=True)
    return HttpResponse(
        DeadPage(
            groups=[render_group(group, call.caller) for group in latest_first],
            next_cursor=None if last is None else codec.group_cursor_of(last.tenant, last.error),
        )
    )


ROUTES = (
    Route(
        "GET", "/v1/dead", Scope.READ, list_dead, "List dead letters, newest first, or grouped by error",
        {200: DeadPage}, query=DeadQuery, tag="dead letters", large_page=True,
    ),
    Route(
        "POST", "/v1/dead/replay", Scope.CANCEL, replay_dead, "Replay dead letters, by ids or all that match",
        {200: BulkOut}, ReplayRequest, tag="dead letters",
    ),
    Route(
        "DELETE", "/v1/dead", Scope.CANCEL, purge_dead, "Delete dead letters, by ids or all that match", {200: BulkOut},
        query=PurgeQuery, tag="dead letters",
    ),
)  # fmt: skip
