"""Quota usage of tenants, for all dialects."""

from abc import abstractmethod
from collections.abc import Collection

from holdfast.model.access import Tenant
from holdfast.store.port.store import LockedUsage, QuotaUsageRepository
from holdfast.store.sql.runner import StatementRunner


class SqlQuotas(StatementRunner, QuotaUsageRepository):
    """Quota usage within a transaction."""

    @abstractmethod
    async def tenant(self, name: str) -> Tenant | None:
        """Return a tenant, or None."""

    async def limited_tenants(self, limit: int) -> list[str]:
        return [row[0] for row in await self.rows("limited_tenants", limit=limit)]

    async def lock_usage(self, tenant: str) -> LockedUsage:
        found = await self.rows("lock_usage", tenant=tenant)
        row = await self.tenant(tenant)
        # Read the clock last: acquiring the lock may have taken long.
        return LockedUsage(found[0][1] if found else None, row and row.quotas, await self.now())

    async def begin_usage(self, tenant: str) -> None:
        await self.count("begin_usage", tenant=tenant, state=b"")

    async def save_usage(self, tenant: str, state: bytes) -> None:
        await self.count("save_usage", tenant=tenant, state=state)

    async def tenant_backlog(self, tenant: str, max_count: int) -> int:
        jobs: int = (await self.rows("tenant_backlog", tenant=tenant, max_count=max_count))[0][0]
        return jobs

    async def queue_backlogs(self, tenant: str, queues: Collection[str], max_count: int) -> dict[str, int]:
        return {
            queue: (await self.rows("queue_backlog", tenant=tenant, queue=queue, max_count=max_count))[0][0]
            for queue in queues
        }
