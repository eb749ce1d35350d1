"""Render workers and job types."""

from collections.abc import Iterable

from holdfast.engine.sized_pages import SizedPage
from holdfast.engine.workers import TypeSummary
from holdfast.model.access import Caller
from holdfast.model.ids import worker_name
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.model.worker import WorkerRow
from holdfast.policy.nodes import worker_actions
from holdfast.store.port.change_log import HeldCount
from holdfast.wire import workers as wire
from holdfast.wire.workers import TypePage, WorkerOut


def render_workers(
    rows: Iterable[WorkerRow], now: Instant, holdings: Iterable[HeldCount], caller: Caller
) -> list[WorkerOut]:
    """Render the workers that the caller may see, counting the jobs that the caller may see."""
    visible = [row for row in rows if caller.is_admin or row.info.tenant in (None, caller.tenant)]
    held = dict.fromkeys((row.info.id for row in visible), 0)
    for holding in holdings:
        if holding.worker in held and (caller.is_admin or holding.tenant == caller.tenant):
            held[holding.worker] += holding.jobs
    return [_render_worker(row, now, running=held[row.info.id], admin=caller.is_admin) for row in visible]


def _render_worker(row: WorkerRow, now: Instant, *, running: int, admin: bool) -> WorkerOut:
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
        unresponsive_since=None if row.unresponsive_since is None else rfc3339(row.unresponsive_since),
        blocked_by=row.blocked_by,
        actions=list(worker_actions(row, now)) if admin else [],
    )


def render_types(types: SizedPage[TypeSummary]) -> TypePage:
    """Render a page of job types."""
    items = [
        wire.type_out(
            summary.row.tenant,
            summary.row.about,
            summary.queues,
            workers=len(summary.workers),
            last_seen=summary.last_seen,
        )
        for summary in types.items
    ]
    last = types.items[-1].row if types.more else None
    return TypePage(items, None if last is None else wire.type_cursor(last.about.type, last.tenant))
