"""Change log and rollups, for all dialects."""

from abc import abstractmethod
from collections.abc import Sequence

from holdfast.model.change_log import ChangeEntry, decode
from holdfast.model.state import STATUS_OF_CODE
from holdfast.model.time import Duration, Instant
from holdfast.store.port.change_log import (
    ChangeLogRange,
    ChangeLogRepository,
    Rollup,
    RollupCursor,
    ServiceSlice,
    StatusCount,
)
from holdfast.store.sql.codec import Row
from holdfast.store.sql.runner import StatementRunner


class SqlChangeLog(StatementRunner, ChangeLogRepository):
    """Change log and rollups within a transaction."""

    @abstractmethod
    async def write_rollups(self, span: int, rollups: Sequence[Rollup]) -> None:
        """Insert or replace these rollups; the span is in seconds."""

    async def changes_after(self, seq: int, limit: int) -> list[ChangeEntry]:
        return [entry_of(row) for row in await self.rows("changes_after", seq=seq, limit=limit)]

    async def change_numbers(self, seq: int, limit: int) -> list[int]:
        return [row[0] for row in await self.rows("change_numbers", seq=seq, limit=limit)]

    async def change_log_range(self) -> ChangeLogRange:
        pruned, last = (await self.rows("change_log_range"))[0]
        return ChangeLogRange(pruned or 0, max(last or 0, pruned or 0))

    async def rollup_cursor(self) -> RollupCursor:
        found = await self.rows("rollup_cursor")
        return cursor_of(found[0]) if found else RollupCursor(0, b"[]", 0, Instant(0))

    async def lock_rollup_cursor(self) -> RollupCursor | None:
        found = await self.rows("lock_rollup_cursor")
        if not found and not await self.rows("rollup_cursor"):
            await self.count("begin_rollup_cursor")
            found = await self.rows("lock_rollup_cursor")
        return cursor_of(found[0]) if found else None

    async def save_rollup_cursor(self, rollup_cursor: RollupCursor) -> None:
        await self.count("save_rollup_cursor", **rollup_cursor._asdict())

    async def prune_changes(self, upto: int, keep: Duration, limit: int) -> int | None:
        last: int | None = (await self.rows("old_changes", upto=upto, keep=keep, limit=limit))[0][0]
        if last is not None:
            await self.count("prune_changes", last=last)
        return last

    async def rollups(self, span: Duration, tenant: str, since: Instant, before: Instant) -> list[Rollup]:
        rows = await self.rows("rollups", span=_seconds(span), tenant=tenant, since=since, before=before)
        return [rollup_of(row) for row in rows]

    async def served(self, span: Duration, since: Instant, limit: int) -> list[ServiceSlice]:
        rows = await self.rows("served", span=_seconds(span), since=since, limit=limit)
        return [ServiceSlice(tenant, Instant(at), int(cost), Duration(waited)) for tenant, at, cost, waited in rows]

    async def rollups_at(self, span: Duration, at: Instant) -> list[Rollup]:
        return [rollup_of(row) for row in await self.rows("rollups_at", span=_seconds(span), at=at)]

    async def save_rollups(self, span: Duration, rollups: Sequence[Rollup]) -> None:
        if rollups:
            await self.write_rollups(_seconds(span), rollups)

    async def prune_rollups(self, span: Duration, before: Instant, limit: int) -> int:
        return await self.count("prune_rollups", span=_seconds(span), before=before, limit=limit)

    async def remove_rollups(self, span: Duration, tenant: str, job_type: str) -> int:
        return await self.count("remove_rollups", span=_seconds(span), tenant=tenant, type=job_type)

    async def census(self) -> list[StatusCount]:
        return [status_count_of(row) for row in await self.rows("census")]

    async def dead_census(self) -> list[StatusCount]:
        return [status_count_of(row) for row in await self.rows("dead_census")]


def cursor_of(row: Row) -> RollupCursor:
    """Decode the row of the rollup cursor."""
    seq, gaps, pruned, hours, lost = row
    return RollupCursor(seq, _bytes(gaps), pruned, Instant(hours), lost)


def rollup_of(row: Row) -> Rollup:
    """Decode a row of the columns `stats`."""
    return Rollup._make([*row[:10], _bytes(row[10]), _bytes(row[11]), *row[12:]])


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def status_count_of(row: Row) -> StatusCount:
    """Decode a row of `census` or `dead_census`."""
    tenant, queue, job_type, status, jobs, since = row
    return StatusCount(tenant, queue, job_type, STATUS_OF_CODE[status], jobs, since)


def _seconds(span: Duration) -> int:
    return span // 1_000_000


def entry_of(row: Row) -> ChangeEntry:
    """Decode a row of the change log."""
    seq, at, body = row
    return ChangeEntry(seq, Instant(at), decode(body))
