"""Maintenance loops and their intervals. Every node may run all of them at once."""

import asyncio
import random
from collections.abc import Callable
from typing import NamedTuple

from holdfast.engine import deliveries, workers
from holdfast.engine.changes import rollups
from holdfast.engine.jobs import deadlines
from holdfast.engine.jobs import reap as reaping
from holdfast.engine.limits import KeySlotRotation
from holdfast.engine.periodic import Tick, run_periodically
from holdfast.model.job import RetryRule
from holdfast.model.time import in_seconds
from holdfast.store.port.store import Retention, Store
from holdfast.telemetry.emit import Emit
from holdfast.telemetry.events import JobsReaped

REAP_INTERVAL_S = 1.0
MAX_PROMOTE_INTERVAL_S = 0.5
"""Check for due jobs at least this often, because a new job may be due before all known ones."""
DEADLINE_INTERVAL_S = 0.5
ORPHAN_INTERVAL_S = 30.0
PRUNE_INTERVAL_S = 30.0
TABLE_MAINTENANCE_INTERVAL_S = 3.0
ROLLUP_INTERVAL_S = 2.0
BUSY_ROLLUP_INTERVAL_S = 5.0
"""Interval while an update touches many series: its cost depends on the series, not on the events."""

_PROMOTE_BATCH_SIZE = 1_000
_PRUNE_BATCH_SIZE = 1_000
_MANY_SERIES = 2_000


class MaintenanceRules(NamedTuple):
    """Retry rule and retention that maintenance applies."""

    retry: RetryRule
    retention: Retention


async def run_maintenance(
    store: Store, rules: MaintenanceRules, *, stop: asyncio.Event, emit: Emit, rng: Callable[[], float] = random.random
) -> None:
    """Run all loops until `stop`."""

    async def reap() -> float:
        jobs = await reaping.reap(store, default=rules.retry, rng=rng)
        if jobs:
            emit(JobsReaped(jobs=jobs))
        return 0 if jobs >= reaping.BATCH_SIZE else REAP_INTERVAL_S

    async def adopt() -> float:
        jobs = await reaping.adopt_orphans(store, default=rules.retry, rng=rng)
        if jobs:
            emit(JobsReaped(jobs=jobs))
        return 0 if jobs >= reaping.BATCH_SIZE else ORPHAN_INTERVAL_S

    async def promote() -> float:
        due = await store.single(lambda tx: tx.next_due())
        if due is None:
            return MAX_PROMOTE_INTERVAL_S
        if due > 0:
            return min(MAX_PROMOTE_INTERVAL_S, in_seconds(due) + 0.001)
        # A short batch while jobs are due means that another node is promoting them.
        return 0 if await promote_due(store) >= _PROMOTE_BATCH_SIZE else 0.01

    async def prune() -> float:
        gone = await store.run(lambda tx: tx.prune(rules.retention, _PRUNE_BATCH_SIZE))
        gone += await store.run(lambda tx: tx.prune_limits(_PRUNE_BATCH_SIZE))
        gone += await rollups.prune(store, _PRUNE_BATCH_SIZE)
        gone += await deliveries.prune(store, _PRUNE_BATCH_SIZE)
        return 0.05 if gone >= _PRUNE_BATCH_SIZE else PRUNE_INTERVAL_S

    turns = KeySlotRotation(store).round

    async def roll_up() -> float:
        more, series = await rollups.update_rollups(store)
        return 0 if more else ROLLUP_INTERVAL_S if series < _MANY_SERIES else BUSY_ROLLUP_INTERVAL_S

    async def maintain_tables() -> float:
        await store.maintain_tables(rules.retention)
        return TABLE_MAINTENANCE_INTERVAL_S

    loops: dict[str, Tick] = {
        "reap": reap,
        "promote": promote,
        "orphans": adopt,
        "prune": prune,
        "tend": maintain_tables,
    }
    loops |= {
        "types": lambda: workers.see_types(store),
        "fold": roll_up,
        "turns": turns,
        "deadlines": lambda: _miss(store),
    }
    async with asyncio.TaskGroup() as group:
        for name, tick in loops.items():
            group.create_task(run_periodically(name, tick, stop=stop, emit=emit), name=f"holdfast {name}")


async def run_once(
    store: Store, rules: MaintenanceRules, *, rng: Callable[[], float] = random.random
) -> tuple[int, int]:
    """Reap and promote until nothing is left; return the numbers of jobs recovered and made ready."""
    put_back = made_ready = 0
    for work in (reaping.reap, reaping.adopt_orphans):
        while done := await work(store, default=rules.retry, rng=rng):
            put_back += done
    while done := await promote_due(store):
        made_ready += done
    return put_back, made_ready


async def _miss(store: Store) -> float:
    return 0 if await deadlines.cancel_overdue(store) >= deadlines.BATCH_SIZE else DEADLINE_INTERVAL_S


async def promote_due(store: Store) -> int:
    """Make one batch of due jobs ready and return its size."""
    return await store.single(lambda tx: tx.promote(_PROMOTE_BATCH_SIZE))
