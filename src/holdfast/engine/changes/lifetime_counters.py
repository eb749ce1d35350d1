"""What ever happened, by queue and type: counters that only grow, the same whichever node is asked."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from holdfast.model.change_log import ChangeEntry, Histogram
from holdfast.model.time import Duration, Instant
from holdfast.policy import rollups
from holdfast.policy.gaps import GapTracker
from holdfast.policy.rollups import ALL_TENANTS, JobStats, SeriesKey, StatsByKey
from holdfast.store.port.change_log import Rollup
from holdfast.store.port.store import Tx

EVER = Duration(0)
"""The span of figures that are never removed."""

MAX_SERIES = 1_000
"""Pairs of a queue and a type that are counted apart; later ones are counted together, under no name."""

_BEGINNING = Instant(0)
_MAX_UNPROCESSED_ROWS = 20_000

_ENCODE = msgspec.json.Encoder().encode
_HISTOGRAM = msgspec.json.Decoder(Histogram).decode


async def add(tx: Tx, counted: StatsByKey) -> None:
    """Add what is folded now. Under the lock of the fold, so that all is added once."""
    mine = {place: figures for place, figures in counted.items() if place.tenant == ALL_TENANTS}
    if not mine:
        return
    stored = await _stored(tx)
    changed = _added(stored, mine)
    await tx.save_rollups(EVER, [_row(place, stored[place]) for place in changed])


class LifetimeCounters(NamedTuple):
    """What happened to jobs, by queue and type, and to workers."""

    jobs: StatsByKey
    lost: int
    """Workers whose lease ran out."""


async def read(tx: Tx) -> LifetimeCounters:
    """All that was folded, and what was not yet, on one snapshot."""
    cursor = await tx.rollup_cursor()
    seen = GapTracker.read(cursor.seq, cursor.holes)
    unfolded = await tx.changes_at(seen.missing()) if seen.gaps else []
    unfolded += await tx.changes_after(seen.upto, _MAX_UNPROCESSED_ROWS)
    stored = await _stored(tx)
    _added(stored, rollups.count(unfolded, only=ALL_TENANTS))
    return LifetimeCounters(stored, cursor.lost + lost(unfolded))


def lost(entries: Iterable[ChangeEntry]) -> int:
    """How many workers these rows tell of whose lease ran out."""
    return sum(entry.body.lost() for entry in entries)


def _added(into: StatsByKey, more: StatsByKey) -> set[SeriesKey]:
    changed: set[SeriesKey] = set()
    for place, figures in more.items():
        ever = place._replace(at=_BEGINNING)
        if ever not in into and len(into) >= MAX_SERIES:
            ever = SeriesKey(ALL_TENANTS, _BEGINNING, "", "")
        into.setdefault(ever, JobStats()).add(figures)
        changed.add(ever)
    return changed


async def _stored(tx: Tx) -> StatsByKey:
    rows = await tx.rollups_at(EVER, _BEGINNING)
    return {
        SeriesKey(*row[:4]): JobStats(*row[4:10], _HISTOGRAM(row.wait), _HISTOGRAM(row.run), *row[12:]) for row in rows
    }


def _row(place: SeriesKey, f: JobStats) -> Rollup:
    counts = (f.submitted, f.started, f.succeeded, f.failed, f.dead, f.cancelled)
    return Rollup(*place, *counts, _ENCODE(f.wait), _ENCODE(f.run), f.cost, Duration(f.waited), f.reaped)
