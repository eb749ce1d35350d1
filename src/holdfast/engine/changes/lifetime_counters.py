"""Lifetime counters by queue and type: they only grow, and are the same on every node."""

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.engine.changes.stored_stats import decode_rollups, encode_rollup
from holdfast.model.change_log import ChangeEntry
from holdfast.model.time import Duration, Instant
from holdfast.policy import rollups
from holdfast.policy.gaps import GapTracker
from holdfast.policy.rollups import ALL_TENANTS, JobStats, SeriesKey, StatsByKey
from holdfast.store.port.store import Tx

LIFETIME = Duration(0)
"""Span under which lifetime counters are stored among the rollups; they are never pruned."""

MAX_SERIES = 1_000
"""Pairs of queue and type with their own counters; later pairs share one without a name."""

_START = Instant(0)
_MAX_UNPROCESSED_ROWS = 20_000


class LifetimeCounters(NamedTuple):
    """Counters of jobs by queue and type, and of workers."""

    jobs: StatsByKey
    lost: int
    """Workers whose lease expired."""


async def add(tx: Tx, stats: StatsByKey) -> None:
    """Add new stats to the stored counters.

    Requires the lock of the rollup cursor, so that each change is added once.
    """
    of_all = {key: value for key, value in stats.items() if key.tenant == ALL_TENANTS}
    if not of_all:
        return
    counters = await _read_stored(tx)
    changed = _add_to(counters, of_all)
    await tx.save_rollups(LIFETIME, [encode_rollup(key, counters[key]) for key in changed])


async def read(tx: Tx) -> LifetimeCounters:
    """Return the stored counters plus newer changes, on one snapshot."""
    cursor = await tx.rollup_cursor()
    seen = GapTracker.read(cursor.seq, cursor.gaps)
    unprocessed = await tx.changes_at(seen.missing()) if seen.gaps else []
    unprocessed += await tx.changes_after(seen.upto, _MAX_UNPROCESSED_ROWS)
    counters = await _read_stored(tx)
    _add_to(counters, rollups.count(unprocessed, only=ALL_TENANTS))
    return LifetimeCounters(counters, cursor.lost + lost_workers(unprocessed))


def lost_workers(entries: Iterable[ChangeEntry]) -> int:
    """Return the number of workers in these entries whose lease expired."""
    return sum(entry.body.lost_workers() for entry in entries)


def _add_to(counters: StatsByKey, more: StatsByKey) -> set[SeriesKey]:
    """Add stats to the counters and return the changed keys."""
    changed: set[SeriesKey] = set()
    for key, stats in more.items():
        counter = key._replace(at=_START)
        if counter not in counters and len(counters) >= MAX_SERIES:
            counter = SeriesKey(ALL_TENANTS, _START, "", "")
        counters.setdefault(counter, JobStats()).add(stats)
        changed.add(counter)
    return changed


async def _read_stored(tx: Tx) -> StatsByKey:
    return decode_rollups(await tx.rollups_at(LIFETIME, _START))
