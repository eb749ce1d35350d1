"""What is known of tenants that have limits, on any of the databases."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from holdfast.model.access import Tenant
from holdfast.model.time import Instant
from holdfast.store.port.store import LockedUsage
from holdfast.store.sql.codec import Row


class SqlQuotas(ABC):
    """The part of a transaction that knows tenants with limits. See `holdfast.store.port.store.QuotaUsage`."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""

    @abstractmethod
    async def tenant(self, name: str) -> Tenant | None:
        """Return a tenant, or None."""

    @abstractmethod
    async def now(self) -> Instant:
        """Return the database clock."""

    async def limited_tenants(self, limit: int) -> list[str]:
        return [row[0] for row in await self.rows("limited_tenants", limit=limit)]

    async def lock_usage(self, tenant: str) -> LockedUsage:
        found = await self.rows("lock_usage", tenant=tenant)
        known = await self.tenant(tenant)
        # Asked last: others may have waited for the lock until now.
        return LockedUsage(found[0][1] if found else None, known and known.quotas, await self.now())

    async def begin_usage(self, tenant: str) -> None:
        await self.count("begin_usage", tenant=tenant, state=b"")

    async def save_usage(self, tenant: str, state: bytes) -> None:
        await self.count("save_usage", tenant=tenant, state=state)

    async def tenant_backlog(self, tenant: str, most: int) -> int:
        jobs: int = (await self.rows("tenant_backlog", tenant=tenant, most=most))[0][0]
        return jobs

    async def queue_backlogs(self, tenant: str, queues: Collection[str], most: int) -> dict[str, int]:
        return {
            queue: (await self.rows("queue_backlog", tenant=tenant, queue=queue, most=most))[0][0] for queue in queues
        }
