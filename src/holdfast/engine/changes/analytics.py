"""Statistics over recent windows, from rollups and newer changes, cached per node."""

import asyncio
from typing import NamedTuple

from holdfast.engine.changes.query_cache import CoalescingCache, ThrottledQuery
from holdfast.engine.changes.stored_stats import decode_rollups
from holdfast.engine.claiming.dispatch_settings import effective_at
from holdfast.model.change_log import ChangeEntry
from holdfast.model.time import Duration, Instant, in_seconds
from holdfast.policy import rollups
from holdfast.policy.fairness.report import Fairness, ServiceSample, fairness
from holdfast.policy.gaps import GapTracker
from holdfast.policy.rollups import ALL_TENANTS, HOURS_RETENTION, MINUTE, StatsByKey
from holdfast.store.port.change_log import HeldCount, RollupCursor, StatusCount
from holdfast.store.port.store import Store, Tx

_MAX_UNPROCESSED_ROWS = 20_000
MAX_SERVED_ROWS = 200_000
"""Rows of tenants and time steps read for one fairness report."""


class Window(NamedTuple):
    """Statistics over a window that ends now.

    The time step is a minute, hour or day, depending on the length of the window.
    """

    since: Instant
    until: Instant
    step: Duration
    stats: StatsByKey

    @property
    def span(self) -> Duration:
        """Length of the window."""
        return Duration(self.until - self.since)


class FairnessWindow(NamedTuple):
    """Fairness over a window that ends now."""

    since: Instant
    until: Instant
    step: Duration
    fairness: Fairness


class Census(NamedTuple):
    """Numbers of unfinished and dead jobs at an instant."""

    at: Instant
    status_counts: list[StatusCount]

    def of(self, tenant: str | None) -> list[StatusCount]:
        """Return the numbers of one tenant; None means all tenants."""
        if tenant is None:
            return self.status_counts
        return [status_count for status_count in self.status_counts if status_count.tenant == tenant]


class Analytics:
    """Cached statistics of one node: each query runs at most once a second for all callers."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._windows: CoalescingCache[tuple[str, Duration], Window] = CoalescingCache(self._read_window)
        self._fairness: CoalescingCache[Duration, FairnessWindow] = CoalescingCache(self._read_fairness)
        self._unfinished = ThrottledQuery(self._count_unfinished)
        self._dead = ThrottledQuery(self._count_dead)
        self._holding = ThrottledQuery(self._count_held)

    async def window(self, tenant: str | None, span: Duration) -> Window:
        """Return the statistics of a tenant's jobs over the last `span`; None means all tenants."""
        return await self._windows.get((ALL_TENANTS if tenant is None else tenant, span))

    async def fairness(self, span: Duration) -> FairnessWindow:
        """Return the service that tenants received in the last `span` and their fair shares."""
        return await self._fairness.get(span)

    async def census(self) -> Census:
        """Return the numbers of unfinished and dead jobs.

        The result is older the more jobs there are: see `ThrottledQuery`.
        """
        unfinished, dead = await asyncio.gather(self._unfinished.get(), self._dead.get())
        return Census(unfinished.at, [*unfinished.status_counts, *dead.status_counts])

    async def count(self) -> Census:
        """Count unfinished and dead jobs now, without the cache. Takes long if there are many."""
        unfinished, dead = await asyncio.gather(self._count_unfinished(), self._count_dead())
        return Census(unfinished.at, [*unfinished.status_counts, *dead.status_counts])

    async def held_counts(self) -> list[HeldCount]:
        """Return the number of jobs that each worker holds."""
        return await self._holding.get()

    async def aclose(self) -> None:
        """Cancel queries in flight."""
        for query in (self._unfinished, self._dead, self._holding):
            await query.aclose()

    async def _read_window(self, key: tuple[str, Duration]) -> Window:
        tenant, span = key
        return await self._store.read(lambda tx: read_window(tx, tenant, span))

    async def _read_fairness(self, span: Duration) -> FairnessWindow:
        census = await self._unfinished.get()
        return await self._store.read(lambda tx: read_fairness(tx, span, census))

    async def _count_unfinished(self) -> Census:
        return await self._store.read(lambda tx: _census(tx, dead=False))

    async def _count_held(self) -> list[HeldCount]:
        return await self._store.read(lambda tx: tx.held_counts())

    async def _count_dead(self) -> Census:
        return await self._store.read(lambda tx: _census(tx, dead=True))


async def read_window(tx: Tx, tenant: str, span: Duration) -> Window:
    """Read a tenant's rollups ('': of all together) and newer changes, on one snapshot."""
    now = await tx.now()
    cursor = await tx.rollup_cursor()
    step = rollups.step_of(span)
    since = rollups.floor(Instant(now - span), step)
    forever = Instant(now + HOURS_RETENTION)
    stats = decode_rollups(await tx.rollups(step, tenant, since, forever))
    if step != MINUTE:
        later = await tx.rollups(MINUTE, tenant, max(since, cursor.hours), forever)
        rollups.add(stats, rollups.downsample(decode_rollups(later), step))
    unprocessed = rollups.count(await _unprocessed(tx, cursor), only=tenant)
    recent = {key: value for key, value in unprocessed.items() if key.at >= since}
    return Window(since, now, step, rollups.add(stats, rollups.downsample(recent, step)))


async def read_fairness(tx: Tx, span: Duration, census: Census) -> FairnessWindow:
    """Read the service of all tenants on one snapshot and compute the fairness report.

    Backlogs at the end of the window come from the census; paused jobs do not count as waiting.
    """
    now = await tx.now()
    step = rollups.step_of(span)
    since = rollups.floor(Instant(now - span), step)
    cursor = await tx.rollup_cursor()
    served = [ServiceSample(*row) for row in await tx.served(step, since, MAX_SERVED_ROWS)]
    if step != MINUTE:
        later = await tx.served(MINUTE, Instant(max(since, cursor.hours)), MAX_SERVED_ROWS)
        served += [ServiceSample(tenant, rollups.floor(at, step), cost, waited) for tenant, at, cost, waited in later]
    for key, stats in rollups.count(await _unprocessed(tx, cursor)).items():
        if key.tenant != ALL_TENANTS and key.at >= since:
            served.append(ServiceSample(key.tenant, rollups.floor(key.at, step), stats.cost, Duration(stats.waited)))
    settings = await tx.dispatch_settings()
    effective = effective_at(settings, now)
    waiting: dict[str, Instant] = {}
    for status_count in census.status_counts:
        tenant, since_due = status_count.tenant, status_count.since
        if since_due is None or effective.is_paused(status_count.queue, tenant) or status_count.type in effective.types:
            continue
        waiting[tenant] = min(since_due, waiting.get(tenant, since_due))
    report = fairness(served, waiting, settings.weights, since=since, until=now, step=step)
    return FairnessWindow(since, now, step, report)


async def _unprocessed(tx: Tx, cursor: RollupCursor) -> list[ChangeEntry]:
    seen = GapTracker.read(cursor.seq, cursor.gaps)
    late = await tx.changes_at(seen.missing()) if seen.gaps else []
    return late + await tx.changes_after(seen.upto, _MAX_UNPROCESSED_ROWS)


async def _census(tx: Tx, *, dead: bool) -> Census:
    return Census(await tx.now(), await (tx.dead_census() if dead else tx.census()))


def rate(count: int, span: Duration) -> float:
    """Return a count per second."""
    return count / in_seconds(span) if span > 0 else 0.0
