"""Queue settings and the jobs that workers hold, for all dialects."""

from holdfast.model.ids import WorkerId
from holdfast.model.queue import Queue
from holdfast.store.port.change_log import HeldCount, QueueRepository
from holdfast.store.sql.runner import StatementRunner


class SqlQueues(StatementRunner, QueueRepository):
    """Queue settings and held jobs within a transaction."""

    async def queues(self) -> list[Queue]:
        return [Queue(row[0], bool(row[1]), *row[2:]) for row in await self.rows("queues")]

    async def save_queue(self, queue: Queue) -> None:
        await self.count(
            "save_queue",
            name=queue.name,
            paused=int(queue.paused),
            reason=queue.reason,
            until=queue.until,
            changed_by=queue.changed_by,
        )
        await self.count("bump_settings_version")

    async def held_counts(self) -> list[HeldCount]:
        return [HeldCount(WorkerId(worker), tenant, jobs) for worker, tenant, jobs in await self.rows("held_counts")]
