"""The feed on any of the databases: told by the statements that change jobs, read by tails and roll-ups."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from holdfast.model.change_log import Entry, read
from holdfast.model.state import STATUS_OF_CODE
from holdfast.model.time import Duration, Instant
from holdfast.store.port.change_log import Folds, Kept, Rollup, Served, Standing
from holdfast.store.sql.codec import Row


class SqlFeed(ABC):
    """The part of a transaction that reads the feed. See `holdfast.store.port.store.Feed`."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement; its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement; how many rows it changed."""

    @abstractmethod
    async def tell(self, body: bytes) -> None:
        """Write a row of the feed."""

    @abstractmethod
    async def feed_at(self, numbers: Collection[int]) -> list[Entry]:
        """See the port."""

    async def feed_after(self, seq: int, limit: int) -> list[Entry]:
        """See the port."""
        return [entry_of(row) for row in await self.rows("feed_after", seq=seq, limit=limit)]

    async def feed_numbers(self, seq: int, limit: int) -> list[int]:
        """See the port."""
        return [row[0] for row in await self.rows("feed_numbers", seq=seq, limit=limit)]

    async def feed_kept(self) -> Kept:
        """See the port."""
        pruned, last = (await self.rows("feed_kept"))[0]
        return Kept(pruned or 0, max(last or 0, pruned or 0))

    async def folds(self) -> Folds:
        """See the port."""
        found = await self.rows("folds")
        return folds_of(found[0]) if found else Folds(0, b"[]", 0, Instant(0))

    async def lock_folds(self) -> Folds | None:
        """See the port."""
        found = await self.rows("lock_folds")
        if not found and not await self.rows("folds"):
            await self.count("begin_folds")
            found = await self.rows("lock_folds")
        return folds_of(found[0]) if found else None

    async def save_folds(self, folds: Folds) -> None:
        """See the port."""
        await self.count("save_folds", **folds._asdict())

    async def prune_feed(self, upto: int, keep: Duration, limit: int) -> int | None:
        """See the port."""
        last: int | None = (await self.rows("old_feed", upto=upto, keep=keep, limit=limit))[0][0]
        if last is not None:
            await self.count("prune_feed", last=last)
        return last

    async def rollups(self, span: Duration, tenant: str, since: Instant, before: Instant) -> list[Rollup]:
        """See the port."""
        asked = {"span": _seconds(span), "tenant": tenant, "since": since, "before": before}
        return [rollup_of(row) for row in await self.rows("rollups", **asked)]

    async def served(self, span: Duration, since: Instant, limit: int) -> list[Served]:
        """See the port."""
        rows = await self.rows("served", span=_seconds(span), since=since, limit=limit)
        return [Served(tenant, Instant(at), int(cost), Duration(waited)) for tenant, at, cost, waited in rows]

    async def rollups_at(self, span: Duration, at: Instant) -> list[Rollup]:
        """See the port."""
        return [rollup_of(row) for row in await self.rows("rollups_at", span=_seconds(span), at=at)]

    async def save_rollups(self, span: Duration, rollups: Sequence[Rollup]) -> None:
        """See the port."""
        if rollups:
            await self.put_rollups(_seconds(span), rollups)

    async def prune_rollups(self, span: Duration, before: Instant, limit: int) -> int:
        """See the port."""
        return await self.count("prune_rollups", span=_seconds(span), before=before, limit=limit)

    async def census(self) -> list[Standing]:
        """See the port."""
        return [standing_of(row) for row in await self.rows("census")]

    async def dead_census(self) -> list[Standing]:
        """See the port."""
        return [standing_of(row) for row in await self.rows("dead_census")]

    @abstractmethod
    async def put_rollups(self, span: int, rollups: Sequence[Rollup]) -> None:
        """Insert or replace these; the span in seconds."""


def folds_of(row: Row) -> Folds:
    """How far the feed was folded."""
    seq, holes, pruned, hours, lost = row
    return Folds(seq, _bytes(holes), pruned, Instant(hours), lost)


def rollup_of(row: Row) -> Rollup:
    """Stored figures."""
    return Rollup._make([*row[:10], _bytes(row[10]), _bytes(row[11]), *row[12:]])


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def standing_of(row: Row) -> Standing:
    """A row of a census."""
    tenant, queue, job_type, status, jobs, since = row
    return Standing(tenant, queue, job_type, STATUS_OF_CODE[status], jobs, since)


def _seconds(span: Duration) -> int:
    return span // 1_000_000


def entry_of(row: Row) -> Entry:
    """A row of the feed."""
    seq, at, body = row
    return Entry(seq, Instant(at), read(body))
