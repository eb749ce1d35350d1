"""Workers and their leases on any of the databases."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

from holdfast.model import change_log
from holdfast.model.change_log import WorkerChange
from holdfast.model.ids import WorkerId
from holdfast.model.time import Duration, Instant
from holdfast.model.worker import LeaseState, WorkerInfo, WorkerRow
from holdfast.store.sql.codec import Row, departed_of, types_text, worker_of


class SqlFleet(ABC):
    """The part of a transaction that knows workers. See `holdfast.store.port.workers.Fleet`."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement; its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement; how many rows it changed."""

    @abstractmethod
    async def tell(self, body: bytes) -> None:
        """Write a row of the feed."""

    @abstractmethod
    def together(self) -> AbstractAsyncContextManager[None]:
        """Make one transaction of several statements."""

    async def register(self, worker: WorkerInfo, lease: Duration) -> None:
        """See the port."""
        async with self.together():
            await self.count(
                "register",
                worker=worker.id,
                name=worker.name,
                host=worker.host,
                pid=worker.pid,
                version=worker.version,
                queues=worker.queues,
                slots=worker.slots,
                tenant=worker.tenant,
                types=types_text(worker.types),
                node=worker.node,
                lease=lease,
            )
            await self.tell(change_log.of_workers([WorkerChange(worker.id, change_log.REGISTERED, worker.name)]))

    async def renew(
        self, worker: WorkerId, lease: Duration, *, memory: int | None = None, draining: bool = False
    ) -> bool:
        """See the port."""
        return await self.count("renew", worker=worker, lease=lease, memory=memory, draining=int(draining)) == 1

    async def drain_workers(self, workers: Iterable[WorkerId]) -> list[WorkerId]:
        """See the port."""
        async with self.together():
            asked = [worker for worker in sorted(workers) if await self.count("drain_worker", worker=worker)]
            if asked:
                await self.tell(change_log.of_workers([WorkerChange(worker, change_log.DRAINING) for worker in asked]))
        return asked

    async def lease_state(self, worker: WorkerId) -> LeaseState | None:
        """See the port."""
        rows = await self.rows("lease_state", worker=worker)
        return None if not rows else LeaseState(rows[0][0], Duration(rows[0][1]), bool(rows[0][2]))

    async def depart(self, worker: WorkerId) -> bool:
        """See the port."""
        async with self.together():
            # Locked by a statement of its own: the next one then sees what a claim that was under way has taken.
            await self.rows("lock_worker", worker=worker)
            return await self.strike("depart", [worker]) == 1

    async def expired(self, limit: int) -> list[WorkerId]:
        """See the port."""
        return [WorkerId(row[0]) for row in await self.rows("expired", limit=limit)]

    async def forget(self, workers: Collection[WorkerId]) -> int:
        """See the port."""
        return await self.strike("forget", workers)

    async def strike(self, name: Literal["depart", "forget"], workers: Iterable[WorkerId]) -> int:
        """Strike workers from the register by this statement, and tell of it; how many."""
        gone = []
        for worker in workers:
            rows = await self.rows("about_to_go", worker=worker)
            if await self.count(name, worker=worker):
                gone.append(worker)
                for row in rows:
                    names = ("worker", "name", "host", "queues", "types", "tenant", "seen_at")
                    await self.count("remember_worker", **dict(zip(names, row, strict=True)))
        if gone:
            event = change_log.LOST if name == "forget" else change_log.GONE
            await self.tell(change_log.of_workers([WorkerChange(worker, event) for worker in gone]))
        return len(gone)

    async def departed(self, limit: int) -> list[tuple[WorkerInfo, Instant]]:
        """See the port."""
        return [departed_of(row) for row in await self.rows("departed", limit=limit)]

    async def workers(self) -> list[WorkerRow]:
        """See the port."""
        return [worker_of(row) for row in await self.rows("workers")]
