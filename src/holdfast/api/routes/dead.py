"""Dead letters: look at them, one by one or by error, run them again, throw them away."""

from typing import Any, Literal

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routes.jobs import bulk_out, render_job
from holdfast.api.routing import Route, RouteCall
from holdfast.engine.jobs.queries import MAX_COUNTED, DeadLetterGroup
from holdfast.errors import Invalid
from holdfast.model.access import Caller, Scope
from holdfast.model.job import JobFilter, Page
from holdfast.model.state import Status
from holdfast.model.time import rfc3339
from holdfast.policy.access import visible_tenant
from holdfast.policy.actions import bulk_filter
from holdfast.policy.lifecycle import Action
from holdfast.wire import codec
from holdfast.wire.types import (
    MAX_IDS,
    BulkOut,
    Cursor,
    DeadFilter,
    DeadPage,
    GroupOut,
    Limit,
    ReplayRequest,
)


class DeadQuery(DeadFilter):
    """Which dead letters, and where to go on."""

    group: Literal["fingerprint"] | None = None
    cursor: Cursor | None = None
    limit: Limit = 50


class PurgeQuery(DeadFilter):
    """Which dead letters to delete: by ids (with commas between), or all that match."""

    ids: str | None = None
    all: bool = False
    dry_run: bool = False
    cursor: Cursor | None = None


async def list_dead(call: RouteCall[None, DeadQuery]) -> HttpResponse | Stream:
    """Dead letters, newest first, or in groups with the same error."""
    if call.query.group is not None:
        return await _grouped(call)
    where = codec.filter_of(call.query, tenant=visible_tenant(call.caller, call.query.tenant))
    found = await call.service.engine.jobs.search(where, Page(call.query.limit, codec.read_cursor(call.query.cursor)))
    return HttpResponse(
        DeadPage(items=[render_job(job, call.caller) for job in found.jobs], next_cursor=codec.cursor_of(found.cursor))
    )


async def replay_dead(call: RouteCall[ReplayRequest, None]) -> HttpResponse | Stream:
    """Run dead letters again, each as a new generation of the same job."""
    asked = call.body
    return await _act(call, "retry", asked.filter or DeadFilter(), asked.ids, asked)


async def purge_dead(call: RouteCall[None, PurgeQuery]) -> HttpResponse | Stream:
    """Delete dead letters for good."""
    asked = call.query
    return await _act(call, "delete", asked, None if asked.ids is None else asked.ids.split(","), asked)


async def _act(
    call: RouteCall[Any, Any],
    action: Action,
    which: DeadFilter,
    ids: list[str] | None,
    asked: ReplayRequest | PurgeQuery,
) -> HttpResponse | Stream:
    where = codec.filter_of(which, tenant=visible_tenant(call.caller, which.tenant))
    if ids is None:
        before = codec.read_cursor(asked.cursor)
        reached = bulk_filter(where, action, everything=asked.all, implied=frozenset({"tenant", "status"}))
        done = await call.service.engine.jobs.apply_to_matching(action, reached, before=before, dry_run=asked.dry_run)
        return HttpResponse(bulk_out(done, dry_run=asked.dry_run))
    if where != JobFilter(tenant=where.tenant, status=Status.DEAD) or asked.all or asked.cursor is not None:
        raise Invalid("ids say which already: leave the filter, `all` and `cursor` out", pointer="/ids")
    if len(ids) > MAX_IDS:
        raise Invalid(f"there are {len(ids):,} ids; at most {MAX_IDS:,}: send several requests", pointer="/ids")
    done = await call.service.engine.jobs.apply_to_ids(action, codec.job_ids(ids), where, dry_run=asked.dry_run)
    return HttpResponse(bulk_out(done, dry_run=asked.dry_run))


async def _grouped(call: RouteCall[None, DeadQuery]) -> HttpResponse | Stream:
    asked = call.query
    for name in ("type", "queue", "tag", "created_after", "created_before", "error"):
        if getattr(asked, name) is not None:
            raise Invalid(f"groups are of all dead letters: leave `{name}` out", pointer=f"/{name}")
    tenant = visible_tenant(call.caller, asked.tenant)
    groups = await call.service.engine.jobs.dead_groups(
        tenant, codec.read_group_cursor(asked.cursor), limit=asked.limit
    )
    last = groups[-1].group if len(groups) == asked.limit else None
    following = None if last is None else codec.group_cursor_of(last.tenant, last.error)
    latest_first = sorted(groups, key=lambda each: each.newest.finished_at or 0, reverse=True)
    return HttpResponse(
        DeadPage(groups=[_group_out(each, call.caller) for each in latest_first], next_cursor=following)
    )


def _group_out(found: DeadLetterGroup, caller: Caller) -> GroupOut:
    group, newest, oldest = found
    return GroupOut(
        tenant=group.tenant,
        fingerprint=group.error,
        count=min(group.jobs, MAX_COUNTED),
        more=group.jobs > MAX_COUNTED,
        first_at=rfc3339(oldest.finished_at or oldest.created_at),
        last_at=rfc3339(newest.finished_at or newest.created_at),
        error=codec.last_error(newest),
        newest=render_job(newest, caller),
    )


ROUTES = (
    Route(
        "GET", "/v1/dead", Scope.READ, list_dead, "Dead letters, newest first, or grouped by error", {200: DeadPage},
        query=DeadQuery, tag="dead letters",
    ),
    Route(
        "POST", "/v1/dead/replay", Scope.CANCEL, replay_dead, "Run dead letters again, by ids or all that match",
        {200: BulkOut}, ReplayRequest, tag="dead letters",
    ),
    Route(
        "DELETE", "/v1/dead", Scope.CANCEL, purge_dead, "Delete dead letters, by ids or all that match", {200: BulkOut},
        query=PurgeQuery, tag="dead letters",
    ),
)  # fmt: skip
