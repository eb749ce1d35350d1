"""Workers and their leases, for all dialects."""

from collections.abc import Collection, Iterable
from typing import Literal

from holdfast.model import change_log
from holdfast.model.change_log import WorkerChange
from holdfast.model.ids import WorkerId
from holdfast.model.time import Duration, Instant
from holdfast.model.worker import LeaseState, Unresponsiveness, WorkerInfo, WorkerRow
from holdfast.store.port.workers import WorkerRepository
from holdfast.store.sql.codec import departed_of, types_text, worker_of
from holdfast.store.sql.runner import StatementRunner


class SqlWorkers(StatementRunner, WorkerRepository):
    """Workers and their leases within a transaction."""

    async def register(self, worker: WorkerInfo, lease: Duration) -> None:
        async with self.in_transaction():
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
            await self.append_change(
                change_log.encode_worker_changes([WorkerChange(worker.id, change_log.REGISTERED, worker.name)])
            )

    async def renew(
        self,
        worker: WorkerId,
        lease: Duration,
        *,
        memory: int | None = None,
        draining: bool = False,
        unresponsive: Unresponsiveness | None = None,
    ) -> bool:
        renewed = await self.count(
            "renew",
            worker=worker,
            lease=lease,
            memory=memory,
            draining=int(draining),
            unresponsive=None if unresponsive is None else unresponsive.span,
            blocked_by=None if unresponsive is None else unresponsive.blocked_by,
        )
        return renewed == 1

    async def drain_workers(self, workers: Iterable[WorkerId]) -> list[WorkerId]:
        async with self.in_transaction():
            drained = [worker for worker in sorted(workers) if await self.count("drain_worker", worker=worker)]
            if drained:
                await self.append_change(
                    change_log.encode_worker_changes([WorkerChange(worker, change_log.DRAINING) for worker in drained])
                )
        return drained

    async def lease_state(self, worker: WorkerId) -> LeaseState | None:
        rows = await self.rows("lease_state", worker=worker)
        return None if not rows else LeaseState(rows[0][0], Duration(rows[0][1]), bool(rows[0][2]))

    async def depart(self, worker: WorkerId) -> bool:
        async with self.in_transaction():
            # Lock by a separate statement, so that the next one sees the jobs of a claim that was in progress.
            await self.rows("lock_worker", worker=worker)
            return await self.remove_workers("depart", [worker]) == 1

    async def overlong_leases(self, limit: int) -> list[WorkerId]:
        return [WorkerId(row[0]) for row in await self.rows("overlong_leases", limit=limit)]

    async def shorten_leases(self, workers: Collection[WorkerId]) -> int:
        return sum([await self.count("shorten_lease", worker=worker) for worker in sorted(workers)])

    async def lock_expired(self, limit: int) -> list[WorkerId]:
        return [WorkerId(row[0]) for row in await self.rows("lock_expired", limit=limit)]

    async def lock_expired_worker(self, worker: WorkerId) -> bool:
        return bool(await self.rows("lock_expired_worker", worker=worker))

    async def delete_expired(self, workers: Collection[WorkerId]) -> int:
        return await self.remove_workers("delete_expired", workers)

    async def remove_workers(self, name: Literal["depart", "delete_expired"], workers: Iterable[WorkerId]) -> int:
        """Delete workers by this statement and log the change; return how many were deleted."""
        gone = []
        for worker in workers:
            rows = await self.rows("departing_worker", worker=worker)
            if await self.count(name, worker=worker):
                gone.append(worker)
                for row in rows:
                    names = ("worker", "name", "host", "queues", "types", "tenant", "seen_at")
                    await self.count("save_departed_worker", **dict(zip(names, row, strict=True)))
        if gone:
            event = change_log.LOST if name == "delete_expired" else change_log.GONE
            await self.append_change(change_log.encode_worker_changes([WorkerChange(worker, event) for worker in gone]))
        return len(gone)

    async def departed(self, limit: int) -> list[tuple[WorkerInfo, Instant]]:
        return [departed_of(row) for row in await self.rows("departed", limit=limit)]

    async def worker_page(self, tenant: str | None, after: tuple[Instant, int], limit: int) -> list[WorkerRow]:
        rows = await self.rows(
            "worker_page",
            started_at=after[0],
            worker=after[1],
            all_tenants=int(tenant is None),
            tenant=tenant or "",
            limit=limit,
        )
        return [worker_of(row) for row in rows]

    async def workers(self, tenant: str | None = None) -> list[WorkerRow]:
        rows = await self.rows("workers", all_tenants=int(tenant is None), tenant=tenant or "")
        return [worker_of(row) for row in rows]

    async def count_workers_of(self, tenant: str) -> int:
        ((count,),) = await self.rows("count_workers_of", tenant=tenant)
        return int(count)
