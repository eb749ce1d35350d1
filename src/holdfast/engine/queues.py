"""Queues: what is set for them, and which of them rest."""

import time
from collections.abc import Callable, Sequence

from holdfast.model.queue import Queue
from holdfast.model.time import Instant
from holdfast.store.port import Store, Tx

LOOK_EVERY = 0.5
"""Seconds for which a worker goes by what it last knew of pauses."""


async def pause(store: Store, name: str, *, reason: str, until: Instant | None, by: str) -> Queue:
    """Have nothing of a queue claimed, until it is resumed or `until`; what is running goes on."""
    return await store.run(lambda tx: _save(tx, Queue(name, paused=True, reason=reason, until=until, changed_by=by)))


async def resume(store: Store, name: str, *, by: str) -> Queue:
    """Have its jobs claimed again."""
    return await store.run(lambda tx: _save(tx, Queue(name, changed_by=by)))


async def at_present(tx: Tx) -> tuple[Instant, list[Queue]]:
    """The time, and the queues that something was set for."""
    return await tx.now(), await tx.queues()


async def _save(tx: Tx, queue: Queue) -> Queue:
    await tx.save_queue(queue)
    return next(each for each in await tx.queues() if each.name == queue.name)


class Pauses:
    """Which queues rest, as a worker knows it: never older than half a second when it claims."""

    def __init__(self, store: Store, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._asked = float("-inf")
        self.paused: frozenset[str] = frozenset()

    async def look(self) -> bool:
        """Ask, if it was not just asked; whether something changed."""
        now = self._monotonic()
        if now - self._asked < LOOK_EVERY:
            return False
        self._asked = now  # others that claim meanwhile go by what is known
        try:
            found = frozenset(await self._store.single(lambda tx: tx.paused_queues()))
        except BaseException:
            self._asked = float("-inf")
            raise
        changed = found != self.paused
        self.paused = found
        return changed

    def open(self, queues: Sequence[str]) -> list[str]:
        """Those that do not rest."""
        return [queue for queue in queues if queue not in self.paused]
