"""Limits on what runs: set them, see how they stand, and keep turns of keys moving."""

import time
from collections.abc import Callable, Collection, Sequence

from holdfast.model.limit import Limit, LimitKind, LimitName, Pause, PauseKind, Rate
from holdfast.model.time import Instant
from holdfast.store.port.limits import KeyHolder
from holdfast.store.port.store import Store, Tx

KEY_BATCH_SIZE = 200
UNCLAIMED_SLOT_TIMEOUT_S = 2.0
"""Seconds that a job may have a turn of its key without being claimed while others wait for one."""

BUSY = 0.25
"""Seconds between rounds while jobs wait for keys."""

IDLE = 1.0


class Limits:
    """The use cases of limits and pauses. Whatever they set holds on all workers within a second."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def set(self, name: LimitName, *, max_running: int | None, rate: Rate | None, by: str = "") -> Limit:
        """Limit what runs from now on; what runs goes on, and counts. None is no limit, for a key its default."""

        async def work(tx: Tx) -> Limit:
            await tx.set_limit(name, max_running, rate, by)
            if name.kind is LimitKind.KEY:  # there may be room for more
                await tx.pass_turns([(name.tenant, name.name)])
            found = await tx.limits_named([name])
            return found[0] if found else Limit(name)

        return await self._store.run(work)

    async def all(self, kind: LimitKind | None = None, *, tenant: str | None = None) -> tuple[Instant, list[Limit]]:
        """The time, and the limits that somebody set; of a tenant's keys, or of all."""

        async def work(tx: Tx) -> tuple[Instant, list[Limit]]:
            return await tx.now(), await tx.limits(kind, tenant=tenant)

        return await self._store.read(work)

    async def named(self, names: Collection[LimitName]) -> tuple[Instant, dict[LimitName, Limit]]:
        """The time, and how these stand; those that nobody set are left out, but for keys."""

        async def work(tx: Tx) -> tuple[Instant, dict[LimitName, Limit]]:
            return await tx.now(), {limit.of: limit for limit in await tx.limits_named(names)}

        return await self._store.read(work)

    async def pause(self, pause: Pause) -> Pause:
        """Have nothing of a type or a tenant claimed, until that is ended or its time has come; what runs goes on."""

        async def work(tx: Tx) -> Pause:
            await tx.save_pause(pause)
            return next(each for each in await tx.pauses() if each[:2] == pause[:2])

        return await self._store.run(work)

    async def end_pause(self, kind: PauseKind, name: str) -> Pause | None:
        """Have it claimed again. The pause that was; None when it did not rest, which is as well."""

        async def work(tx: Tx) -> Pause | None:
            found = next((each for each in await tx.pauses() if each[:2] == (kind, name)), None)
            return found if await tx.end_pause(kind, name) else None

        return await self._store.run(work)

    async def pauses(self) -> tuple[Instant, list[Pause]]:
        """The time, and what rests besides queues."""

        async def work(tx: Tx) -> tuple[Instant, list[Pause]]:
            now = await tx.now()
            return now, [each for each in await tx.pauses() if each.holds_at(now)]

        return await self._store.read(work)


class KeySlotRotation:
    """Keeps turns of keys moving, round by round. Safe on every node at once.

    A turn is passed on with the commit of whatever ends a job. This is for what no commit tells: a bucket that filled,
    a job that was passed by because somebody was about to change it and did not, and a job that has a turn but is not
    claimed, because its queue rests or no worker handles its type.
    """

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._after = ("", "")
        self._seen: dict[KeyHolder, float] = {}
        """Since when somebody has had a turn and not used it."""

    async def round(self) -> float:
        """Look at some of the keys that jobs wait for; seconds until the next look."""
        after = self._after
        keys = await self._store.single(lambda tx: tx.waiting_keys(after, KEY_BATCH_SIZE))
        self._after = keys[-1] if len(keys) == KEY_BATCH_SIZE else ("", "")
        if not keys:
            self._seen.clear()
            return BUSY if after != ("", "") else IDLE
        await self._store.run(lambda tx: tx.pass_turns(keys))
        holders = await self._store.run(lambda tx: tx.key_holders(keys))
        if stuck := self._stuck(holders):
            await self._store.run(lambda tx: tx.yield_turns(stuck))
        return BUSY

    def _stuck(self, holders: Sequence[KeyHolder]) -> list[KeyHolder]:
        now = self._monotonic()
        since = {each: self._seen.get(each, now) for each in holders}
        self._seen = {**self._seen, **since} if self._after != ("", "") else since
        return [each for each in holders if now - since[each] >= UNCLAIMED_SLOT_TIMEOUT_S]


def is_unsettled(limit: Limit) -> bool:
    """Whether jobs may run that a limit does not count, so that they must be looked for."""
    return limit.unsettled and limit.max_running is not None and limit.of.kind is not LimitKind.KEY
