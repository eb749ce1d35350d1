"""Limits on PostgreSQL. Rows are locked in the order of their names."""

from collections.abc import Collection, Iterable, Sequence

from holdfast.model.ids import WorkerId
from holdfast.model.limit import Limit, LimitKind, LimitName
from holdfast.model.time import Instant
from holdfast.store.port.limits import KeyHolder
from holdfast.store.sql.codec import Row
from holdfast.store.sql.limits import ConcurrencyKey, KeyCapacity, limit_of
from holdfast.store.sql.tx import SqlTx


class LimitsTx(SqlTx):
    """Limits within a transaction."""

    async def lock_limits(self, worker: WorkerId, names: Collection[LimitName]) -> tuple[list[Limit], Instant] | None:
        kinds, tenants, texts = (list(column) for column in zip(*sorted(names), strict=True))
        rows = await self.rows("lock_limits_as", worker=worker, kinds=kinds, tenants=tenants, names=texts)
        if not rows:
            return None
        return [limit_of(row[1:]) for row in rows if row[1] is not None], Instant(rows[0][0])

    async def lock_rows(self, names: Sequence[LimitName]) -> list[Limit]:
        """Lock and return the limits that have a row, in the order given."""
        kinds, tenants, texts = (list(column) for column in zip(*names, strict=True))
        return [limit_of(row) for row in await self.rows("lock_limits", kinds=kinds, tenants=tenants, names=texts)]

    async def begin_keys(self, keys: Sequence[ConcurrencyKey]) -> None:
        """Create missing limit rows for these keys."""
        await self.rows("begin_keys", tenants=[key[0] for key in keys], names=[key[1] for key in keys])

    async def grant_slots(
        self, capacities: Sequence[KeyCapacity], queues: Sequence[str], types: Sequence[str]
    ) -> Iterable[Row]:
        """Make the next jobs that wait for these keys ready."""
        tenants, names, slots, tokens = (list(column) for column in zip(*capacities, strict=True))
        columns = {"tenants": tenants, "names": names, "slots": slots, "tokens": tokens}
        return await self.rows("grant_slots", **columns, queues=list(queues), types=list(types))

    async def yield_slot(self, holder: KeyHolder) -> bool:
        """Move a ready job behind the jobs that wait for its key."""
        return await self.count("yield_slot", id=holder.id, seq=holder.seq) == 1

    async def uncounted(self, name: LimitName) -> int:
        await self.rows("disable_seqscan")
        statement = "uncounted_queue" if name.kind is LimitKind.QUEUE else "uncounted_tenant"
        return int((await self.rows(statement, name=name.name))[0][0])
