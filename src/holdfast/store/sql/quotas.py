"""What is known of tenants that have limits, on any of the databases."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from holdfast.model.access import Tenant
from holdfast.model.time import Instant
from holdfast.store.port.store import Locked
from holdfast.store.sql.codec import Row


class SqlAdmission(ABC):
    """The part of a transaction that knows tenants with limits. See `holdfast.store.port.store.Admission`."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement; its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement; how many rows it changed."""

    @abstractmethod
    async def tenant(self, name: str) -> Tenant | None:
        """See the port."""

    @abstractmethod
    async def now(self) -> Instant:
        """See the port."""

    async def limited_tenants(self, limit: int) -> list[str]:
        """See the port."""
        return [row[0] for row in await self.rows("limited_tenants", limit=limit)]

    async def lock_ledger(self, tenant: str) -> Locked:
        """See the port."""
        found = await self.rows("lock_ledger", tenant=tenant)
        known = await self.tenant(tenant)
        # Asked last: others may have waited for the lock until now.
        return Locked(found[0][1] if found else None, known and known.quotas, await self.now())

    async def begin_ledger(self, tenant: str) -> None:
        """See the port."""
        await self.count("begin_ledger", tenant=tenant, state=b"")

    async def save_ledger(self, tenant: str, state: bytes) -> None:
        """See the port."""
        await self.count("save_ledger", tenant=tenant, state=state)

    async def tenant_backlog(self, tenant: str, most: int) -> int:
        """See the port."""
        jobs: int = (await self.rows("tenant_backlog", tenant=tenant, most=most))[0][0]
        return jobs

    async def queue_backlogs(self, tenant: str, queues: Collection[str], most: int) -> dict[str, int]:
        """See the port."""
        return {
            queue: (await self.rows("queue_backlog", tenant=tenant, queue=queue, most=most))[0][0] for queue in queues
        }
