"""The feed folded into roll-ups: by minute for each tenant and for all, by hour and day later."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.engine.changes import lifetime_counters
from holdfast.model.change_log import ChangeEntry, Histogram
from holdfast.model.time import Duration, Instant, seconds
from holdfast.policy import rollups
from holdfast.policy.gaps import GapTracker
from holdfast.policy.rollups import (
    DAY,
    HOUR,
    HOURS_RETENTION,
    MINUTE,
    MINUTES_RETENTION,
    JobStats,
    SeriesKey,
    StatsByKey,
)
from holdfast.store.port.change_log import Rollup, RollupCursor
from holdfast.store.port.store import Store, Tx

CHANGE_LOG_RETENTION = seconds(300)
"""How long rows of the feed are there for whoever resumes a stream."""

MAX_ROWS_PER_UPDATE = 2_000
"""Rows folded in one transaction, at the most."""

MAX_GROUPS_PER_UPDATE = 50_000
"""Counts of kinds of jobs folded in one transaction, about: a row of thousands of tenants has as many."""

FIRST_PAGE = 20
"""Rows read at first; twice as many each time after, since nobody knows how much is in a row."""

_PRUNE_BATCH_SIZE = 5_000
_MINUTES_PER_UPDATE = 30
"""Minutes that are added to their hours in one transaction."""

_ENCODE = msgspec.json.Encoder().encode
_HISTOGRAM = msgspec.json.Decoder(Histogram).decode


class RollupResult(NamedTuple):
    """What a fold did."""

    more: bool
    """There was more than it took in."""
    places: int = 0
    """How many figures it changed: the more, the dearer, whatever happened to each."""


async def update_rollups(store: Store) -> RollupResult:
    """Fold what is new of the feed into roll-ups, once each, and remove what is old.

    Safe on every node at once: one does it, the others pass by. What was folded and what is noted of it is one
    transaction.
    """

    async def work(tx: Tx) -> RollupResult:
        cursor = await tx.lock_rollup_cursor()
        if cursor is None:
            return RollupResult(more=False)
        now = await tx.now()
        seen = GapTracker.read(cursor.seq, cursor.holes)
        fresh = _Fresh()
        await fresh.read(tx, seen, now)
        seen.expire(now)
        figures = fresh.tally.stats()
        await _add(tx, MINUTE, figures)
        await lifetime_counters.add(tx, figures)
        begun = cursor.hours or (rollups.floor(fresh.first, HOUR) - HOUR if fresh.first else 0)
        upto = min(now, fresh.last) if fresh.more else now
        hours = await _make_hours(tx, Instant(begun), upto) if begun else begun
        gone = await tx.prune_changes(seen.low_water, CHANGE_LOG_RETENTION, _PRUNE_BATCH_SIZE)
        changed = RollupCursor(
            seen.upto, seen.encode_gaps(), max(cursor.pruned, gone or 0), Instant(hours), cursor.lost + fresh.lost
        )
        if changed != cursor:
            await tx.save_rollup_cursor(changed)
        return RollupResult(fresh.more, len(figures))

    return await store.run(work)


class _Fresh:
    """What a fold takes in, counted page by page: other tasks have their turn between them."""

    def __init__(self) -> None:
        self.tally = rollups.RollupBuilder()
        self.lost = 0
        self.first = self.last = Instant(0)
        """When the first and the last of the new rows were written; 0 if there are none."""
        self.more = False
        self._groups = 0

    async def read(self, tx: Tx, seen: GapTracker, now: Instant) -> None:
        """Rows that had been missing, then those beyond all that were seen: as many as is well in one transaction."""
        if seen.gaps:
            self._take_in(await tx.changes_at(seen.missing()), seen, now)
        rows, page = 0, FIRST_PAGE
        while not self.more:
            wanted = min(page, MAX_ROWS_PER_UPDATE - rows)
            fresh = await tx.changes_after(seen.upto, wanted)
            if fresh:
                self.first = self.first or fresh[0].at
                self.last = fresh[-1].at
                self._take_in(fresh, seen, now)
            if len(fresh) < wanted:
                return
            rows, page = rows + len(fresh), 2 * page
            self.more = rows >= MAX_ROWS_PER_UPDATE or self._groups >= MAX_GROUPS_PER_UPDATE

    def _take_in(self, entries: Sequence[ChangeEntry], seen: GapTracker, now: Instant) -> None:
        seen.mark_seen([entry.seq for entry in entries], now)
        self.tally.add_entries(entries)
        self.lost += lifetime_counters.lost(entries)
        self._groups += sum(len(entry.body.g) for entry in entries)


async def prune(store: Store, limit: int) -> int:
    """Remove figures past their retention; how many."""

    async def work(tx: Tx) -> int:
        now = await tx.now()
        hours = (await tx.rollup_cursor()).hours
        gone = await tx.prune_rollups(MINUTE, Instant(min(now - MINUTES_RETENTION, hours)), limit)
        for span in (HOUR, DAY):
            gone += await tx.prune_rollups(span, Instant(now - HOURS_RETENTION - DAY), limit)
        return gone

    return await store.run(work)


def counted(rows: Sequence[Rollup]) -> StatsByKey:
    """Figures as they are stored."""
    return {
        SeriesKey(*row[:4]): JobStats(*row[4:10], _HISTOGRAM(row.wait), _HISTOGRAM(row.run), *row[12:]) for row in rows
    }


async def _make_hours(tx: Tx, begun: Instant, now: Instant) -> Instant:
    """Add minutes that are complete to their hours and days; up to which that is done."""
    at = begun
    last = min(rollups.floor(Instant(now - rollups.SETTLED_AFTER), MINUTE), at + _MINUTES_PER_UPDATE * MINUTE)
    while at < last:
        minute = counted(await tx.rollups_at(MINUTE, at))
        for span in (HOUR, DAY):
            await _add(tx, span, rollups.downsample(minute, span))
        at = Instant(at + MINUTE)
    return at


async def _add(tx: Tx, span: Duration, more: StatsByKey) -> None:
    """Add figures to those that are stored."""
    for at in sorted({place.at for place in more}):
        here = {place: figures for place, figures in more.items() if place.at == at}
        stored = counted(await tx.rollups_at(span, at))
        together = rollups.add({place: stored[place] for place in here if place in stored}, here)
        await tx.save_rollups(span, [_stored(place, figures) for place, figures in together.items()])


def _stored(place: SeriesKey, f: JobStats) -> Rollup:
    counts = (f.submitted, f.started, f.succeeded, f.failed, f.dead, f.cancelled)
    return Rollup(*place, *counts, _ENCODE(f.wait), _ENCODE(f.run), f.cost, Duration(f.waited), f.reaped)
