"""Concurrency and rate limits, pauses, and the rotation of concurrency key slots."""

import time
from collections.abc import Callable, Collection, Sequence

from msgspec import UNSET, UnsetType

from holdfast.model.limit import Limit, LimitKind, LimitName, Pause, PauseKind, Rate
from holdfast.model.time import Instant
from holdfast.store.port.limits import KeyHolder
from holdfast.store.port.store import Store, Tx

KEY_BATCH_SIZE = 200
UNCLAIMED_SLOT_TIMEOUT_S = 2.0
"""Time after which a job that holds a slot of its key without being claimed yields it."""

BUSY_INTERVAL_S = 0.25
"""Interval of rotation rounds while jobs wait for keys."""

IDLE_INTERVAL_S = 1.0
"""Interval of rotation rounds while no job waits for a key."""


class LimitService:
    """Use cases of limits and pauses. A change takes effect on all workers within a second."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def set(self, name: LimitName, *, max_running: int | None, rate: Rate | None, by: str = "") -> Limit:
        """Set a limit and return it. None means unlimited, or for a concurrency key the default.

        Running jobs continue even above the limit, and count towards it.
        """

        async def work(tx: Tx) -> Limit:
            await _set_limit(tx, name, max_running, rate, by)
            return await _limit(tx, name)

        return await self._store.run(work)

    async def change(
        self,
        name: LimitName,
        *,
        max_running: int | UnsetType | None = UNSET,
        rate: Rate | UnsetType | None = UNSET,
        by: str = "",
    ) -> None:
        """Change a part of a limit; UNSET keeps the current value."""
        if isinstance(max_running, UnsetType) and isinstance(rate, UnsetType):
            return

        async def work(tx: Tx) -> None:
            before = await _limit(tx, name)
            await _set_limit(
                tx,
                name,
                before.max_running if isinstance(max_running, UnsetType) else max_running,
                before.rate if isinstance(rate, UnsetType) else rate,
                by,
            )

        await self._store.run(work)

    async def all(self, kind: LimitKind | None = None, *, tenant: str | None = None) -> tuple[Instant, list[Limit]]:
        """Return the time and the configured limits, optionally of one kind or tenant."""

        async def work(tx: Tx) -> tuple[Instant, list[Limit]]:
            return await tx.now(), await tx.limits(kind, tenant=tenant)

        return await self._store.read(work)

    async def named(self, names: Collection[LimitName]) -> tuple[Instant, dict[LimitName, Limit]]:
        """Return the time and the named limits with their usage.

        Limits that are not set are left out, except those of keys, which have a default.
        """

        async def work(tx: Tx) -> tuple[Instant, dict[LimitName, Limit]]:
            return await tx.now(), {limit.of: limit for limit in await tx.limits_named(names)}

        return await self._store.read(work)

    async def pause(self, pause: Pause) -> Pause:
        """Pause a job type or tenant until it is resumed or `pause.until`; running jobs continue."""

        async def work(tx: Tx) -> Pause:
            await tx.save_pause(pause)
            return next(saved for saved in await tx.pauses() if saved[:2] == pause[:2])

        return await self._store.run(work)

    async def end_pause(self, kind: PauseKind, name: str) -> Pause | None:
        """Resume a job type or tenant; return the pause that ended, or None if it was not paused."""

        async def work(tx: Tx) -> Pause | None:
            found = next((pause for pause in await tx.pauses() if pause[:2] == (kind, name)), None)
            return found if await tx.end_pause(kind, name) else None

        return await self._store.run(work)

    async def pauses(self) -> tuple[Instant, list[Pause]]:
        """Return the time and the pauses of job types and tenants in effect."""

        async def work(tx: Tx) -> tuple[Instant, list[Pause]]:
            now = await tx.now()
            return now, [pause for pause in await tx.pauses() if pause.holds_at(now)]

        return await self._store.read(work)


async def _limit(tx: Tx, name: LimitName) -> Limit:
    limits = await tx.limits_named([name])
    return limits[0] if limits else Limit(name)


async def _set_limit(tx: Tx, name: LimitName, max_running: int | None, rate: Rate | None, by: str) -> None:
    await tx.set_limit(name, max_running, rate, by)
    if name.kind is LimitKind.KEY:  # a higher limit lets waiting jobs become ready
        await tx.grant_key_slots([(name.tenant, name.name)])


class KeySlotRotation:
    """Periodic grants of concurrency key slots. Safe on all nodes at once.

    The transaction that ends a job also grants its slot to the next one. The rotation covers the cases without such a
    transaction: a token bucket refilled; a waiting job was skipped because its row was locked; a job holds a slot but
    is not claimed, because its queue is paused or no worker handles its type.
    """

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._after = ("", "")
        self._seen: dict[KeyHolder, float] = {}
        """Jobs that hold a slot without being claimed, and when that was first seen."""

    async def round(self) -> float:
        """Process one batch of keys that jobs wait for; return the seconds until the next round."""
        after = self._after
        keys = await self._store.single(lambda tx: tx.waiting_keys(after, KEY_BATCH_SIZE))
        self._after = keys[-1] if len(keys) == KEY_BATCH_SIZE else ("", "")
        if not keys:
            self._seen.clear()
            return BUSY_INTERVAL_S if after != ("", "") else IDLE_INTERVAL_S
        await self._store.run(lambda tx: tx.grant_key_slots(keys))
        holders = await self._store.run(lambda tx: tx.key_holders(keys))
        if stuck := self._stuck(holders):
            await self._store.run(lambda tx: tx.yield_key_slots(stuck))
        return BUSY_INTERVAL_S

    def _stuck(self, holders: Sequence[KeyHolder]) -> list[KeyHolder]:
        now = self._monotonic()
        since = {holder: self._seen.get(holder, now) for holder in holders}
        self._seen = {**self._seen, **since} if self._after != ("", "") else since
        return [holder for holder in holders if now - since[holder] >= UNCLAIMED_SLOT_TIMEOUT_S]


def is_unsettled(limit: Limit) -> bool:
    """Return True if jobs may run that the limit does not count: a claim must count them."""
    return limit.unsettled and limit.max_running is not None and limit.of.kind is not LimitKind.KEY
