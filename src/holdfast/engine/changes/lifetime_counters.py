"""What ever happened, by queue and type: counters that only grow, the same whichever node is asked."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from holdfast.model.change_log import Entry, Histogram
from holdfast.model.time import Duration, Instant
from holdfast.policy import rollups
from holdfast.policy.gaps import Seen
from holdfast.policy.rollups import EVERYBODY, Counted, Figures, Place
from holdfast.store.port.change_log import Rollup
from holdfast.store.port.store import Tx

EVER = Duration(0)
"""The span of figures that are never removed."""

MOST_PLACES = 1_000
"""Pairs of a queue and a type that are counted apart; later ones are counted together, under no name."""

_BEGINNING = Instant(0)
_MOST_UNFOLDED = 20_000

_ENCODE = msgspec.json.Encoder().encode
_HISTOGRAM = msgspec.json.Decoder(Histogram).decode


async def add(tx: Tx, counted: Counted) -> None:
    """Add what is folded now. Under the lock of the fold, so that all is added once."""
    mine = {place: figures for place, figures in counted.items() if place.tenant == EVERYBODY}
    if not mine:
        return
    stored = await _stored(tx)
    changed = _added(stored, mine)
    await tx.save_rollups(EVER, [_row(place, stored[place]) for place in changed])


class Ever(NamedTuple):
    """What happened to jobs, by queue and type, and to workers."""

    jobs: Counted
    lost: int
    """Workers whose lease ran out."""


async def read(tx: Tx) -> Ever:
    """All that was folded, and what was not yet, on one snapshot."""
    folds = await tx.folds()
    seen = Seen.read(folds.seq, folds.holes)
    unfolded = await tx.feed_at(seen.missing()) if seen.holes else []
    unfolded += await tx.feed_after(seen.upto, _MOST_UNFOLDED)
    stored = await _stored(tx)
    _added(stored, rollups.count(unfolded, only=EVERYBODY))
    return Ever(stored, folds.lost + lost(unfolded))


def lost(entries: Iterable[Entry]) -> int:
    """How many workers these rows tell of whose lease ran out."""
    return sum(entry.body.lost() for entry in entries)


def _added(into: Counted, more: Counted) -> set[Place]:
    changed: set[Place] = set()
    for place, figures in more.items():
        ever = place._replace(at=_BEGINNING)
        if ever not in into and len(into) >= MOST_PLACES:
            ever = Place(EVERYBODY, _BEGINNING, "", "")
        into.setdefault(ever, Figures()).add(figures)
        changed.add(ever)
    return changed


async def _stored(tx: Tx) -> Counted:
    rows = await tx.rollups_at(EVER, _BEGINNING)
    return {Place(*row[:4]): Figures(*row[4:10], _HISTOGRAM(row.wait), _HISTOGRAM(row.run), *row[12:]) for row in rows}


def _row(place: Place, f: Figures) -> Rollup:
    counts = (f.submitted, f.started, f.succeeded, f.failed, f.dead, f.cancelled)
    return Rollup(*place, *counts, _ENCODE(f.wait), _ENCODE(f.run), f.cost, Duration(f.waited), f.reaped)
