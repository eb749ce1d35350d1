"""Rollups of the change log: per minute first, later per hour and day."""

import asyncio
from collections.abc import Collection, Sequence
from itertools import product
from typing import NamedTuple

from holdfast.engine.changes import lifetime_counters
from holdfast.engine.changes.stored_stats import decode_rollups, encode_rollup
from holdfast.model.change_log import ChangeEntry
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy import rollups
from holdfast.policy.gaps import GapTracker
from holdfast.policy.rollups import ALL_TENANTS, DAY, HOUR, HOURS_RETENTION, MINUTE, MINUTES_RETENTION, StatsByKey
from holdfast.store.port.change_log import RollupCursor
from holdfast.store.port.store import Store, Tx

CHANGE_LOG_RETENTION = seconds(300)
"""Time for which change log rows are kept, so that clients can resume an event stream."""

MAX_ROWS_PER_UPDATE = 2_000
"""Rows processed in one transaction."""

MAX_GROUPS_PER_UPDATE = 50_000
"""Approximate number of groups processed in one transaction; one row can have thousands."""

FIRST_PAGE_SIZE = 20
"""Rows in the first page; each page is twice as long, because the size of a row is unknown."""

_PRUNE_BATCH_SIZE = 5_000
_LOCK_RETRY_INTERVAL_S = 0.05
_MINUTES_PER_UPDATE = 30
"""Minutes added to their hours and days in one transaction."""


class RollupResult(NamedTuple):
    """Result of one update."""

    more: bool
    """More rows are waiting."""
    series: int = 0
    """Number of series changed, which determines the cost of an update."""


async def update_rollups(store: Store) -> RollupResult:
    """Add new change log rows to the rollups, exactly once, and prune old rows.

    Safe on all nodes at once: one node gets the lock of the cursor, and the rest return at once. The rollups and the
    cursor change in one transaction.
    """

    async def work(tx: Tx) -> RollupResult:
        cursor = await tx.lock_rollup_cursor()
        return RollupResult(more=False) if cursor is None else await _update(tx, cursor)

    return await store.run(work)


async def remove_stats(store: Store, tenants: Collection[str], types: Collection[str]) -> None:
    """Delete the statistics of these tenants' jobs of these types, and of all tenants' together.

    The changes so far are rolled up first, so that they are not counted afterwards. Lifetime counters stay, because
    they only grow.
    """

    async def work(tx: Tx) -> bool:
        cursor = await tx.lock_rollup_cursor()
        if cursor is None or (await _update(tx, cursor)).more:
            return False
        for span, tenant, job_type in product((MINUTE, HOUR, DAY), (ALL_TENANTS, *tenants), types):
            await tx.remove_rollups(span, tenant, job_type)
        return True

    while not await store.run(work):  # noqa: ASYNC110 - another node may hold the lock
        await asyncio.sleep(_LOCK_RETRY_INTERVAL_S)


async def _update(tx: Tx, cursor: RollupCursor) -> RollupResult:
    """Add new change log rows to the rollups and prune old ones; requires the cursor's lock."""
    now = await tx.now()
    seen = GapTracker.read(cursor.seq, cursor.gaps)
    new = _NewEntries()
    await new.read(tx, seen, now)
    seen.expire(now)
    stats = new.builder.stats()
    await _add(tx, MINUTE, stats)
    await lifetime_counters.add(tx, stats)
    # Minutes before `begun` are part of their hour already; the first update starts an hour before its first row.
    begun = cursor.hours or (rollups.floor(new.first, HOUR) - HOUR if new.first else 0)
    upto = min(now, new.last) if new.more else now  # minutes after the last row that was read are not complete
    hours = await _roll_up_minutes(tx, Instant(begun), upto) if begun else begun
    pruned = await tx.prune_changes(seen.low_water, CHANGE_LOG_RETENTION, _PRUNE_BATCH_SIZE)
    changed = RollupCursor(
        seen.upto, seen.encode_gaps(), max(cursor.pruned, pruned or 0), Instant(hours), cursor.lost + new.lost
    )
    if changed != cursor:
        await tx.save_rollup_cursor(changed)
    return RollupResult(new.more, len(stats))


class _NewEntries:
    """New change log entries, counted page by page so that other tasks can run in between."""

    def __init__(self) -> None:
        self.builder = rollups.RollupBuilder()
        self.lost = 0
        """Workers whose lease expired."""
        self.first = self.last = Instant(0)
        """Times of the first and last new row; 0 if there are none."""
        self.more = False
        self._groups = 0

    async def read(self, tx: Tx, seen: GapTracker, now: Instant) -> None:
        """Read rows that were missing, then new ones, up to the bounds of one transaction."""
        if seen.gaps:
            self._count(await tx.changes_at(seen.missing()), seen, now)
        rows, page = 0, FIRST_PAGE_SIZE
        while not self.more:
            limit = min(page, MAX_ROWS_PER_UPDATE - rows)
            entries = await tx.changes_after(seen.upto, limit)
            if entries:
                self.first = self.first or entries[0].at
                self.last = entries[-1].at
                self._count(entries, seen, now)
            if len(entries) < limit:
                return
            rows, page = rows + len(entries), 2 * page
            self.more = rows >= MAX_ROWS_PER_UPDATE or self._groups >= MAX_GROUPS_PER_UPDATE

    def _count(self, entries: Sequence[ChangeEntry], seen: GapTracker, now: Instant) -> None:
        seen.mark_seen([entry.seq for entry in entries], now)
        self.builder.add_entries(entries)
        self.lost += lifetime_counters.lost_workers(entries)
        self._groups += sum(len(entry.body.g) for entry in entries)


async def prune(store: Store, limit: int) -> int:
    """Delete rollups past their retention and return their number."""

    async def work(tx: Tx) -> int:
        now = await tx.now()
        hours = (await tx.rollup_cursor()).hours
        deleted = await tx.prune_rollups(MINUTE, Instant(min(now - MINUTES_RETENTION, hours)), limit)
        for span in (HOUR, DAY):
            deleted += await tx.prune_rollups(span, Instant(now - HOURS_RETENTION - DAY), limit)
        return deleted

    return await store.run(work)


async def _roll_up_minutes(tx: Tx, begun: Instant, now: Instant) -> Instant:
    """Add final minutes to their hours and days; return the time up to which that is done."""
    at = begun
    last = min(rollups.floor(Instant(now - rollups.FINAL_AFTER), MINUTE), at + _MINUTES_PER_UPDATE * MINUTE)
    while at < last:
        minute = decode_rollups(await tx.rollups_at(MINUTE, at))
        for span in (HOUR, DAY):
            await _add(tx, span, rollups.downsample(minute, span))
        at = Instant(at + MINUTE)
    return at


async def _add(tx: Tx, span: Duration, more: StatsByKey) -> None:
    """Add stats to the stored rollups."""
    for at in sorted({key.at for key in more}):
        new = {key: stats for key, stats in more.items() if key.at == at}
        stored = decode_rollups(await tx.rollups_at(span, at))
        sums = rollups.add({key: stored[key] for key in new if key in stored}, new)
        await tx.save_rollups(span, [encode_rollup(key, stats) for key, stats in sums.items()])
