"""Job types as reported by workers, for all dialects."""

from collections.abc import Sequence

import msgspec

from holdfast.model.job_type import JobType, TypeMark, TypeRow
from holdfast.model.time import Duration, Instant
from holdfast.store.port.job_types import JobTypeRepository
from holdfast.store.sql.runner import StatementRunner

_ABOUT = msgspec.json.Decoder(JobType).decode


class SqlJobTypes(StatementRunner, JobTypeRepository):
    """Job types within a transaction."""

    async def type_marks(self, tenant: str, limit: int) -> list[TypeMark]:
        found = await self.rows("type_marks", tenant=tenant, limit=limit)
        return [TypeMark(name, digest, Instant(seen_at)) for name, digest, seen_at in found]

    async def save_type(self, tenant: str, name: str, digest: str, about: bytes) -> None:
        await self.count("save_type", tenant=tenant, type=name, digest=digest, about=about.decode())

    async def mark_types_seen(self, tenant: str, names: Sequence[str]) -> None:
        for name in names:
            await self.count("mark_type_seen", tenant=tenant, type=name)

    async def delete_types(self, tenant: str, names: Sequence[str]) -> None:
        for name in names:
            await self.count("delete_type", tenant=tenant, type=name)

    async def types(self, tenant: str | None, after: tuple[str, str], limit: int) -> list[TypeRow]:
        name, after_tenant = after
        if tenant is None:
            found = await self.rows("types", after=name, after_tenant=after_tenant, limit=limit)
        else:
            found = await self.rows("types_seen_by", tenant=tenant, after=name, limit=limit)
        return [TypeRow(owner, _ABOUT(about), Instant(seen_at)) for owner, about, seen_at in found]

    async def prune_types(self, keep: Duration) -> int:
        return await self.count("prune_types", keep=keep)
