"""Pause, resume and list queues."""

from holdfast.model.queue import Queue
from holdfast.model.time import Instant
from holdfast.store.port.store import Store, Tx


async def pause(store: Store, name: str, *, reason: str, until: Instant | None, by: str) -> Queue:
    """Pause a queue until it is resumed or `until`; running jobs continue."""
    return await store.run(lambda tx: _save(tx, Queue(name, paused=True, reason=reason, until=until, changed_by=by)))


async def resume(store: Store, name: str, *, by: str) -> Queue:
    """Resume a queue."""
    return await store.run(lambda tx: _save(tx, Queue(name, changed_by=by)))


async def at_present(tx: Tx) -> tuple[Instant, list[Queue]]:
    """Return the time and the configured queues."""
    return await tx.now(), await tx.queues()


async def _save(tx: Tx, queue: Queue) -> Queue:
    await tx.save_queue(queue)
    return next(saved for saved in await tx.queues() if saved.name == queue.name)
