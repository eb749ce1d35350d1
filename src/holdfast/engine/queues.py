"""Queues: what is set for them, and which of them rest."""

from holdfast.model.queue import Queue
from holdfast.model.time import Instant
from holdfast.store.port.store import Store, Tx


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
