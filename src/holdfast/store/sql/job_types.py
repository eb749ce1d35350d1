"""Types of jobs, as workers tell of them, on any of the databases."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.model.job_type import JobType, TypeMark, TypeRow
from holdfast.model.time import Duration, Instant
from holdfast.store.sql.codec import Row

_ABOUT = msgspec.json.Decoder(JobType).decode


class SqlJobTypes(ABC):
    """The part of a transaction that knows types. See `holdfast.store.port.job_types.JobTypes`."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""

    async def type_marks(self, tenant: str, limit: int) -> list[TypeMark]:
        found = await self.rows("type_marks", tenant=tenant, limit=limit)
        return [TypeMark(name, digest, Instant(seen_at)) for name, digest, seen_at in found]

    async def save_type(self, tenant: str, name: str, digest: str, about: bytes) -> None:
        await self.count("save_type", tenant=tenant, type=name, digest=digest, about=about.decode())

    async def see_types(self, tenant: str, names: Sequence[str]) -> None:
        for name in names:
            await self.count("see_type", tenant=tenant, type=name)

    async def forget_types(self, tenant: str, names: Sequence[str]) -> None:
        for name in names:
            await self.count("forget_type", tenant=tenant, type=name)

    async def types(self, tenant: str | None, after: tuple[str, str], limit: int) -> list[TypeRow]:
        name, of = after
        if tenant is None:
            found = await self.rows("types", after=name, after_tenant=of, limit=limit)
        else:
            found = await self.rows("types_seen_by", tenant=tenant, after=name, limit=limit)
        return [TypeRow(whose, _ABOUT(about), Instant(seen_at)) for whose, about, seen_at in found]

    async def prune_types(self, keep: Duration) -> int:
        return await self.count("prune_types", keep=keep)
