"""Primitives of a transaction that the shared mixins build on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from holdfast.model.time import Instant
from holdfast.store.sql.codec import Row


class StatementRunner(ABC):
    """Runs named statements in one transaction. Each dialect implements the abstract methods."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""

    @abstractmethod
    async def append_change(self, body: bytes) -> None:
        """Append an entry to the change log."""

    def in_transaction(self) -> AbstractAsyncContextManager[None]:
        """Group statements into one transaction, even in autocommit mode."""
        return nullcontext()

    async def now(self) -> Instant:
        """Return the database clock."""
        return Instant((await self.rows("now"))[0][0])

    def key_text(self, key: str) -> Any:
        """Return a name in the type that this database compares."""
        return key
