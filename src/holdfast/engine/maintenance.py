"""Maintenance loops and their intervals. Every node may run all of them at once."""

import asyncio
import random
from collections.abc import Callable
from typing import NamedTuple

from holdfast.engine import deliveries, workers
from holdfast.engine.changes import rollups
from holdfast.engine.jobs import deadlines, reap
from holdfast.engine.limits import KeySlotRotation
from holdfast.engine.outages import OutageMonitor
from holdfast.engine.periodic import Tick, run_periodically
from holdfast.model.job import RetryRule
from holdfast.model.time import in_seconds
from holdfast.store.port.store import Retention, Store
from holdfast.telemetry.emit import Emit
from holdfast.telemetry.events import JobsReaped

REAP_INTERVAL_S = 1.0
MAX_PROMOTE_INTERVAL_S = 0.5
"""Longest interval of checks for due jobs; a new job may be due before all known ones."""
DEADLINE_INTERVAL_S = 0.5
ORPHAN_INTERVAL_S = 30.0
PRUNE_INTERVAL_S = 30.0
TABLE_MAINTENANCE_INTERVAL_S = 3.0
ROLLUP_INTERVAL_S = 2.0
BUSY_ROLLUP_INTERVAL_S = 5.0
"""Interval while an update touches many series, which determine its cost."""

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
    """Run all loops until `stop` is set."""
    ticks = _Ticks(store, rules, emit, rng)
    loops: dict[str, Tick] = {
        "reap": ticks.reap,
        "promote": ticks.promote,
        "orphans": ticks.adopt_orphans,
        "prune": ticks.prune,
        "tables": ticks.maintain_tables,
        "types": ticks.mark_types_seen,
        "rollups": ticks.update_rollups,
        "key_slots": KeySlotRotation(store).round,
        "deadlines": ticks.cancel_overdue,
    }
    outages = OutageMonitor(emit)
    async with asyncio.TaskGroup() as group:
        for name, tick in loops.items():
            loop = run_periodically(name, tick, stop=stop, emit=emit, outages=outages)
            group.create_task(loop, name=f"holdfast {name}")


class _Ticks:
    """Ticks of the loops: each does its work once and returns the seconds until the next call."""

    def __init__(self, store: Store, rules: MaintenanceRules, emit: Emit, rng: Callable[[], float]) -> None:
        self._store = store
        self._rules = rules
        self._emit = emit
        self._rng = rng

    async def reap(self) -> float:
        await reap.shorten_leases(self._store)
        jobs = await reap.reap(self._store, default=self._rules.retry, rng=self._rng)
        return self._after_reap(jobs, REAP_INTERVAL_S)

    async def adopt_orphans(self) -> float:
        jobs = await reap.adopt_orphans(self._store, default=self._rules.retry, rng=self._rng)
        return self._after_reap(jobs, ORPHAN_INTERVAL_S)

    def _after_reap(self, jobs: int, interval: float) -> float:
        if jobs:
            self._emit(JobsReaped(jobs=jobs))
        return 0 if jobs >= reap.BATCH_SIZE else interval

    async def promote(self) -> float:
        due = await self._store.single(lambda tx: tx.next_due())
        if due is None:
            return MAX_PROMOTE_INTERVAL_S
        if due > 0:
            return min(MAX_PROMOTE_INTERVAL_S, in_seconds(due) + 0.001)
        # A short batch while jobs are due means that another node is promoting them.
        return 0 if await promote_due(self._store) >= _PROMOTE_BATCH_SIZE else 0.01

    async def prune(self) -> float:
        deleted = await self._store.run(lambda tx: tx.prune(self._rules.retention, _PRUNE_BATCH_SIZE))
        deleted += await self._store.run(lambda tx: tx.prune_limits(_PRUNE_BATCH_SIZE))
        deleted += await rollups.prune(self._store, _PRUNE_BATCH_SIZE)
        deleted += await deliveries.prune(self._store, _PRUNE_BATCH_SIZE)
        return 0.05 if deleted >= _PRUNE_BATCH_SIZE else PRUNE_INTERVAL_S

    async def update_rollups(self) -> float:
        more, series = await rollups.update_rollups(self._store)
        return 0 if more else ROLLUP_INTERVAL_S if series < _MANY_SERIES else BUSY_ROLLUP_INTERVAL_S

    async def maintain_tables(self) -> float:
        await self._store.maintain_tables(self._rules.retention)
        return TABLE_MAINTENANCE_INTERVAL_S

    async def mark_types_seen(self) -> float:
        return await workers.mark_types_seen(self._store)

    async def cancel_overdue(self) -> float:
        checked = await deadlines.cancel_overdue(self._store)
        return 0 if checked >= deadlines.BATCH_SIZE else DEADLINE_INTERVAL_S


async def run_once(
    store: Store, rules: MaintenanceRules, *, rng: Callable[[], float] = random.random
) -> tuple[int, int]:
    """Reap and promote until nothing is left; return how many jobs were recovered and promoted."""
    recovered = promoted = 0
    for work in (reap.reap, reap.adopt_orphans):
        while done := await work(store, default=rules.retry, rng=rng):
            recovered += done
    while done := await promote_due(store):
        promoted += done
    return recovered, promoted


async def promote_due(store: Store) -> int:
    """Make one batch of due jobs ready and return its size."""
    return await store.single(lambda tx: tx.promote(_PROMOTE_BATCH_SIZE))
