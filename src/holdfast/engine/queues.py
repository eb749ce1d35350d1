"""Pause, resume and list queues."""

from holdfast.model.queue import Queue
from holdfast.model.time import Instant
from holdfast.policy.queues import PauseChange, change_pause
from holdfast.store.port.store import Store, Tx


class QueueService:
    """Use cases of queues. A change takes effect on all workers within a second."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def pause(self, name: str, *, reason: str = "", until: Instant | None = None, by: str = "") -> Queue:
        """Pause a queue until it is resumed or `until`; running jobs continue."""
        queue = Queue(name, paused=True, reason=reason, until=until, changed_by=by)
        return await self._store.run(lambda tx: _save(tx, queue))

    async def resume(self, name: str, *, by: str = "") -> Queue:
        """Resume a paused queue."""
        return await self._store.run(lambda tx: _save(tx, Queue(name, changed_by=by)))

    async def change(self, name: str, change: PauseChange, *, by: str = "") -> None:
        """Pause or resume a queue, keeping what the change does not mention. Raises `Invalid`."""

        async def work(tx: Tx) -> None:
            before = next((queue for queue in await tx.queues() if queue.name == name), Queue(name))
            after = change_pause(before, change, await tx.now())
            if after is not None:
                await tx.save_queue(after._replace(changed_by=by))

        await self._store.run(work)

    async def all(self) -> tuple[Instant, list[Queue]]:
        """Return the time and the configured queues."""

        async def work(tx: Tx) -> tuple[Instant, list[Queue]]:
            return await tx.now(), await tx.queues()

        return await self._store.read(work)


async def _save(tx: Tx, queue: Queue) -> Queue:
    await tx.save_queue(queue)
    return next(saved for saved in await tx.queues() if saved.name == queue.name)
