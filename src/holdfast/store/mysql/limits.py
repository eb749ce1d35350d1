"""Limits on MySQL and MariaDB: rows are locked, then written."""

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

_ID = 16
_AT_ONCE = 500
_MOST_CLAIMS = 100_000
_BEYOND = 1 << 15
"""Above every priority."""


class LimitsTx(PipelinedTx):
    """Limits within a transaction."""

    def key_text(self, key: str) -> Any:
        """A name as this database compares it: byte by byte."""
        return key.encode()

    async def each(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement for each row, in order."""
        for row in rows:
            self.defer(name, **row)

    async def lock_limits(self, worker: WorkerId, names: Collection[LimitName]) -> tuple[list[Limit], Instant] | None:
        """The lease is locked when the jobs are: see `claim`."""
        lives = await self.rows("see_lease", worker=worker)
        if not lives:
            return None
        limits = await self.lock_rows(sorted(names))
        return limits, await self.now()

    async def lock_rows(self, names: Sequence[LimitName]) -> list[Limit]:
        """Lock and return the limits that have a row, in the order given."""
        rows = [(int(kind), tenant, self.key_text(name)) for kind, tenant, name in names]
        found: list[Limit] = []
        for start in range(0, len(rows), _AT_ONCE):
            part = self.table(("of_kind", "of_tenant", "of_name"), rows[start : start + _AT_ONCE])
            found += [limit_of(row) for row in await self.rows("lock_limits", rows=part)]
        return found

    async def begin_keys(self, keys: Sequence[ConcurrencyKey]) -> None:
        """Create missing limit rows for these keys."""
        rows = [(int(LimitKind.KEY), tenant, self.key_text(name)) for tenant, name in keys]
        for start in range(0, len(rows), _AT_ONCE):
            self.defer("begin_keys", rows=values(rows[start : start + _AT_ONCE]))

    async def next_in_line(
        self, asks: Sequence[KeyCapacity], queues: Sequence[str], types: Sequence[str]
    ) -> Iterable[Row]:
        """Make the next jobs that wait for these keys ready."""
        counts = [self.text("turns_taken", tenant=ask.tenant, name=self.key_text(ask.name)) for ask in asks]
        taken = [
            result.rows[0][0]
            for start in range(0, len(counts), _AT_ONCE)
            for result in await self.send(*counts[start : start + _AT_ONCE])
        ]
        passed: list[Row] = []
        for ask, used in zip(asks, taken, strict=True):
            passed += await self._next(ask, min(ask.most - used, ask.tokens), queues, types)
        for start in range(0, len(passed), _AT_ONCE):
            self.defer("pass_turns", ids=items([row[0] for row in passed[start : start + _AT_ONCE]]))
        return [(*row[1:5], row[5].decode()) for row in passed]

    async def _next(self, ask: KeyCapacity, room: int, queues: Sequence[str], types: Sequence[str]) -> list[Row]:
        key = {"tenant": ask.tenant, "name": self.key_text(ask.name)}
        found: list[Row] = []
        below = _BEYOND
        while len(found) < room:
            priority = (await self.rows("next_urgency", **key, below=below))[0][0]
            if priority is None:
                break
            asked = {"queues": items(queues), "types": items(types), "room": room - len(found)}
            found += await self.rows("lock_next", **key, priority=priority, **asked)
            below = priority
        return found

    async def yield_turn(self, holder: KeyHolder) -> bool:
        """Put a ready job at the end of the line for its key."""
        return await self.count("yield_turn", id=holder.id, seq=holder.seq) == 1

    async def uncounted(self, name: LimitName) -> int:
        """What runs is found by what was claimed."""
        statement = "uncounted_queue" if name.kind is LimitKind.QUEUE else "uncounted_tenant"
        claims = await self.rows("claimed_ids", limit=_MOST_CLAIMS)
        ids = sorted({row[0][start : start + _ID] for row in claims for start in range(0, len(row[0]), _ID)})
        found = 0
        for start in range(0, len(ids), _AT_ONCE):
            part = items(ids[start : start + _AT_ONCE])
            found += (await self.rows(statement, ids=part, name=name.name))[0][0]
        return found
