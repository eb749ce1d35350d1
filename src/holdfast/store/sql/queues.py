"""Queues on any of the databases, and what workers hold."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from holdfast.model.ids import WorkerId
from holdfast.model.queue import Queue
from holdfast.store.port.change_log import Holding
from holdfast.store.sql.codec import Row


class SqlQueues(ABC):
    """The part of a transaction that knows queues. See `holdfast.store.port.store.Queues`."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""

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

    async def holding(self) -> list[Holding]:
        return [Holding(WorkerId(worker), tenant, jobs) for worker, tenant, jobs in await self.rows("holding")]
