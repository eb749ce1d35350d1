"""Limits on MySQL and MariaDB. Rows are locked, then written."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from holdfast.model.ids import WorkerId
from holdfast.model.limit import Limit, LimitKind, LimitName
from holdfast.model.time import Instant
from holdfast.store.mysql.literal import items, values
from holdfast.store.mysql.pipeline import PipelinedTx
from holdfast.store.port.limits import KeyHolder
from holdfast.store.sql.codec import Row
from holdfast.store.sql.limits import ConcurrencyKey, KeyCapacity, limit_of

_ID_BYTES = 16
_BATCH_SIZE = 500
_MAX_CLAIMS = 100_000
_ABOVE_ALL_PRIORITIES = 1 << 15


class LimitsTx(PipelinedTx):
    """Limits within a transaction."""

    def key_text(self, key: str) -> Any:
        """Return a name as bytes, because this database compares names byte by byte."""
        return key.encode()

    async def each(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement for each row, in order."""
        for row in rows:
            self.defer(name, **row)

    async def lock_limits(self, worker: WorkerId, names: Collection[LimitName]) -> tuple[list[Limit], Instant] | None:
        # The claim locks the lease, together with the jobs.
        lease = await self.rows("read_lease", worker=worker)
        if not lease:
            return None
        limits = await self.lock_rows(sorted(names))
        return limits, await self.now()

    async def lock_rows(self, names: Sequence[LimitName]) -> list[Limit]:
        """Lock and return the limits that have a row, in the order given."""
        rows = [(int(kind), tenant, self.key_text(name)) for kind, tenant, name in names]
        found: list[Limit] = []
        for start in range(0, len(rows), _BATCH_SIZE):
            part = self.table(("of_kind", "of_tenant", "of_name"), rows[start : start + _BATCH_SIZE])
            found += [limit_of(row) for row in await self.rows("lock_limits", rows=part)]
        return found

    async def begin_keys(self, keys: Sequence[ConcurrencyKey]) -> None:
        """Create missing limit rows for these keys."""
        rows = [(int(LimitKind.KEY), tenant, self.key_text(name)) for tenant, name in keys]
        for start in range(0, len(rows), _BATCH_SIZE):
            self.defer("begin_keys", rows=values(rows[start : start + _BATCH_SIZE]))

    async def grant_slots(
        self, capacities: Sequence[KeyCapacity], queues: Sequence[str], types: Sequence[str]
    ) -> Iterable[Row]:
        """Make the next jobs that wait for these keys ready."""
        counts = [self.text("count_key_holders", tenant=key.tenant, name=self.key_text(key.name)) for key in capacities]
        used = [
            result.rows[0][0]
            for start in range(0, len(counts), _BATCH_SIZE)
            for result in await self.send(*counts[start : start + _BATCH_SIZE])
        ]
        granted: list[Row] = []
        for key, slots in zip(capacities, used, strict=True):
            granted += await self._lock_waiting(key, min(key.slots - slots, key.tokens), queues, types)
        for start in range(0, len(granted), _BATCH_SIZE):
            self.defer("grant_slots", ids=items([row[0] for row in granted[start : start + _BATCH_SIZE]]))
        return [(*row[1:5], row[5].decode()) for row in granted]

    async def _lock_waiting(
        self, capacity: KeyCapacity, room: int, queues: Sequence[str], types: Sequence[str]
    ) -> list[Row]:
        key = {"tenant": capacity.tenant, "name": self.key_text(capacity.name)}
        found: list[Row] = []
        below = _ABOVE_ALL_PRIORITIES
        while len(found) < room:
            priority = (await self.rows("next_priority", **key, below=below))[0][0]
            if priority is None:
                break
            found += await self.rows(
                "lock_waiting",
                **key,
                priority=priority,
                queues=items(queues),
                types=items(types),
                room=room - len(found),
            )
            below = priority
        return found

    async def yield_slot(self, holder: KeyHolder) -> bool:
        """Move a ready job behind the jobs that wait for its key."""
        return await self.count("yield_slot", id=holder.id, seq=holder.seq) == 1

    async def uncounted(self, name: LimitName) -> int:
        # There is no index of running jobs: find them through the claims.
        statement = "uncounted_queue" if name.kind is LimitKind.QUEUE else "uncounted_tenant"
        claims = await self.rows("claimed_ids", limit=_MAX_CLAIMS)
        ids = sorted(
            {row[0][start : start + _ID_BYTES] for row in claims for start in range(0, len(row[0]), _ID_BYTES)}
        )
        found = 0
        for start in range(0, len(ids), _BATCH_SIZE):
            part = items(ids[start : start + _BATCH_SIZE])
            found += (await self.rows(statement, ids=part, name=name.name))[0][0]
        return found
