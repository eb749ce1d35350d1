"""The feed on any of the databases: told by the statements that change jobs, read by tails and roll-ups."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

from holdfast.model.feed import Entry, read
from holdfast.model.time import Instant
from holdfast.store.codec import Row
from holdfast.store.port import Kept


class SqlFeed(ABC):
    """The part of a transaction that reads the feed. See `holdfast.store.port.Feed`."""

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

    async def feed_kept(self) -> Kept:
        """See the port."""
        pruned, last = (await self.rows("feed_kept"))[0]
        return Kept(pruned, last or 0)


def entry_of(row: Row) -> Entry:
    """A row of the feed."""
    seq, at, body = row
    return Entry(seq, Instant(at), read(body))
