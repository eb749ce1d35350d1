"""Which loops keep the house, and how often. All are safe on every node at once."""

import asyncio
from typing import NamedTuple

from holdfast.engine import deliveries, workers
from holdfast.engine.changes import rollups
from holdfast.engine.dice import Dice, throw
from holdfast.engine.jobs import deadlines
from holdfast.engine.jobs import reap as reaping
from holdfast.engine.limits import Turns
from holdfast.engine.periodic import Pause, every
from holdfast.model.job import RetryRule
from holdfast.model.time import in_seconds
from holdfast.store.port.store import Retention, Store
from holdfast.telemetry.emit import Emit
from holdfast.telemetry.events import JobsReaped

REAP_EVERY = 1.0
PROMOTE_AT_MOST = 0.5
"""Seconds until due jobs are looked for again, at the most: a job may be submitted that is due before all others."""
DEADLINES_EVERY = 0.5
ORPHANS_EVERY = 30.0
PRUNE_EVERY = 30.0
TEND_EVERY = 3.0
FOLD_EVERY = 2.0
FOLD_SELDOM = 5.0
"""Seconds between folds while each changes many figures: it costs the same however much happened to each."""

_PROMOTED_AT_ONCE = 1_000
_PRUNED_AT_ONCE = 1_000
_MANY_PLACES = 2_000


class Rules(NamedTuple):
    """What housekeeping goes by."""

    retry: RetryRule
    retention: Retention


async def keep_house(store: Store, rules: Rules, *, stop: asyncio.Event, emit: Emit, dice: Dice = throw) -> None:
    """Run all loops until `stop`."""

    async def reap() -> float:
        jobs = await reaping.reap(store, default=rules.retry, dice=dice)
        if jobs:
            emit(JobsReaped(jobs=jobs))
        return 0 if jobs >= reaping.AT_ONCE else REAP_EVERY

    async def adopt() -> float:
        jobs = await reaping.adopt_orphans(store, default=rules.retry, dice=dice)
        if jobs:
            emit(JobsReaped(jobs=jobs))
        return 0 if jobs >= reaping.AT_ONCE else ORPHANS_EVERY

    async def promote() -> float:
        due = await store.single(lambda tx: tx.next_due())
        if due is None:
            return PROMOTE_AT_MOST
        if due > 0:
            return min(PROMOTE_AT_MOST, in_seconds(due) + 0.001)
        # Less than a full batch while something is due: another node is at it.
        return 0 if await promote_due(store) >= _PROMOTED_AT_ONCE else 0.01

    async def prune() -> float:
        gone = await store.run(lambda tx: tx.prune(rules.retention, _PRUNED_AT_ONCE))
        gone += await store.run(lambda tx: tx.prune_limits(_PRUNED_AT_ONCE))
        gone += await rollups.prune(store, _PRUNED_AT_ONCE)
        gone += await deliveries.prune(store, _PRUNED_AT_ONCE)
        return 0.05 if gone >= _PRUNED_AT_ONCE else PRUNE_EVERY

    turns = Turns(store).round

    async def fold() -> float:
        more, places = await rollups.fold(store)
        return 0 if more else FOLD_EVERY if places < _MANY_PLACES else FOLD_SELDOM

    async def tend() -> float:
        await store.tend(rules.retention)
        return TEND_EVERY

    loops: dict[str, Pause] = {"reap": reap, "promote": promote, "orphans": adopt, "prune": prune, "tend": tend}
    loops |= {
        "types": lambda: workers.see_types(store),
        "fold": fold,
        "turns": turns,
        "deadlines": lambda: _miss(store),
    }
    async with asyncio.TaskGroup() as group:
        for name, once in loops.items():
            group.create_task(every(name, once, stop=stop, emit=emit), name=f"holdfast {name}")


async def sweep(store: Store, rules: Rules, *, dice: Dice = throw) -> tuple[int, int]:
    """Reap and promote until there is nothing left to do; how many jobs were put back, and how many made ready."""
    put_back = made_ready = 0
    for work in (reaping.reap, reaping.adopt_orphans):
        while done := await work(store, default=rules.retry, dice=dice):
            put_back += done
    while done := await promote_due(store):
        made_ready += done
    return put_back, made_ready


async def _miss(store: Store) -> float:
    return 0 if await deadlines.cancel_overdue(store) >= deadlines.AT_ONCE else DEADLINES_EVERY


async def promote_due(store: Store) -> int:
    """Make ready what is due, one batch; how many."""
    return await store.single(lambda tx: tx.promote(_PROMOTED_AT_ONCE))
