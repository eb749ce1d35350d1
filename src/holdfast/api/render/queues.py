"""Render queues with their counts, rates and limits."""

from collections import defaultdict
from collections.abc import Iterable

from holdfast.api.render.analytics import count_statuses, render_rates
from holdfast.engine.changes.analytics import Census, Window
from holdfast.model.limit import Limit, queue_limit
from holdfast.model.queue import Queue
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.policy.rollups import JobStats, SeriesKey, StatsByKey
from holdfast.store.port.change_log import StatusCount
from holdfast.wire.analytics import QueueList, QueueOut, Rates
from holdfast.wire.limits import rate_out
from holdfast.wire.name_cursors import name_cursor


def render_queues(  # noqa: PLR0917 - the sources of the list, in order
    now: Instant,
    configured: Iterable[Queue],
    census: Census,
    recent: Window,
    ended: StatsByKey,
    limits: Iterable[Limit],
    *,
    tenant: str | None,
    after: str,
    limit: int,
    only: str | None = None,
) -> QueueList:
    """Render the queues in which a tenant (None: any) has jobs, by name.

    At most `limit` queues whose names follow `after`. `only`: render this queue instead, whether or not it has jobs.
    """
    current: dict[str, list[StatusCount]] = defaultdict(list)
    for status_count in census.of(tenant):
        current[status_count.queue].append(status_count)
    finished: dict[str, dict[SeriesKey, JobStats]] = defaultdict(dict)
    for key, stats in ended.items():
        finished[key.queue][key] = stats
    latest: dict[str, JobStats] = defaultdict(JobStats)
    for key, stats in recent.stats.items():
        latest[key.queue].add(stats)
    limit_of = {limit.of: limit for limit in limits}
    by_name = {queue.name: queue for queue in configured}
    # A queue that was only paused and resumed, such as a mistyped one, is not listed any more.
    paused = {name for name, queue in by_name.items() if not queue.open_at(now)}
    limited = {queue_limit.of[2] for queue_limit in limit_of.values() if queue_limit.is_set}
    known = {*current, *finished, *(paused | limited if tenant is None else ())} if only is None else {only}
    names = sorted(name for name in known if name > after)
    items = [
        _render_queue(
            by_name.get(name, Queue(name)),
            now,
            status_counts=current[name],
            ended=finished[name],
            rates=render_rates(latest[name], recent.span),
            limit=limit_of.get(queue_limit(name)),
            all_tenants=tenant is None,
        )
        for name in names[:limit]
    ]
    return QueueList(rfc3339(census.at), items, name_cursor(items[-1].name) if len(names) > limit else None)


def _render_queue(
    queue: Queue,
    now: Instant,
    *,
    status_counts: list[StatusCount],
    ended: dict[SeriesKey, JobStats],
    rates: Rates,
    limit: Limit | None,
    all_tenants: bool,
) -> QueueOut:
    paused = not queue.open_at(now)
    since = min((status_count.since for status_count in status_counts if status_count.since is not None), default=None)
    return QueueOut(
        name=queue.name,
        paused=paused,
        reason=queue.reason if paused else "",
        until=rfc3339(queue.until) if paused and queue.until is not None else None,
        max_running=None if limit is None else limit.max_running,
        running=None if limit is None or limit.max_running is None or not all_tenants else limit.used,
        rate=None if limit is None else rate_out(limit.rate),
        statuses=count_statuses(status_counts, ended.items()),
        oldest_wait=None if since is None else max(0.0, in_seconds(Duration(now - since))),
        rates=rates,
    )
