"""How statements travel: several in one message, with as few round trips as the answers allow.

A transaction begins with its first statement. Statements that need no answer are held back and go out with the next
one, at the latest with the COMMIT, so that a claim or a settle takes two round trips.
"""

import enum
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from holdfast.store.mysql.driver import Link, Result
from holdfast.store.mysql.literal import Sql, literal, table
from holdfast.store.mysql.rows import job_row
from holdfast.store.sql.codec import Row
from holdfast.store.sql.tx import SqlTx
from holdfast.store.statements import Statements

# With each transaction, not once per connection: a proxy may change the connection behind our back.
_BEGIN = ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION")
_BEGIN_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)

_FINDS = frozenset(
    {"find_live", "find_dead", "find_dead_of", "find_dead_alike", "find_history", "find_history_of", "get"}
)
_JOBS = _FINDS | {"lock_holding", "lock_orphaned", "watched"}
"""Statements whose rows are jobs."""

_READS = _FINDS | {
    "now", "next_due", "workers", "lanes", "counts_live", "counts_dead", "still_held", "steps", "tenant", "api_key",
    "changes_after", "changes_at", "change_numbers", "change_log_range", "rollup_cursor", "rollups", "served",
    "census", "dead_census",
    "queues", "holding", "limited_tenants", "dispatch_settings_version", "limited", "weights", "pauses",
}  # fmt: skip
"""Statements that lock nothing: outside a transaction they answer the same."""

_WRITES = frozenset({"renew", "save_progress"})
"""Statements that are the whole of a call: sent alone they need no transaction around them."""


class Mode(enum.Enum):
    """What a transaction is for."""

    WHOLE = enum.auto()
    SINGLE = enum.auto()
    """One call: it may go out without a transaction around it, where it is one statement."""
    SNAPSHOT = enum.auto()
    """Only reads, all of the same state of the database."""


class PipelinedTx(SqlTx):
    """The part of a transaction that speaks to the connection."""

    def __init__(self, link: Link, statements: Statements, mode: Mode) -> None:
        super().__init__()
        self.committing = False
        """Whether what was sent last may have been committed, if its answer is lost."""
        self._link = link
        self._statements = statements
        self._mode = mode
        self._begun = False
        self._held_back: list[str] = []

    async def commit(self) -> None:
        """Make it last."""
        if self._begun or self._held_back:
            self.committing = self._mode is not Mode.SNAPSHOT
            await self.send("COMMIT")

    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""
        text = self.text(name, **parameters)
        (result,) = await (self._link.send(text) if name in _READS and self.alone else self.send(text))
        return [job_row(row) for row in result.rows] if name in _JOBS else result.rows

    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of matched rows."""
        text = self.text(name, **parameters)
        (result,) = await (self.send_alone(text) if name in _WRITES and self.alone else self.send(text))
        return int(result.matched)

    @property
    def alone(self) -> bool:
        """Whether the next statement may go out without a transaction: it is to be all there is."""
        return self._mode is Mode.SINGLE and not self._begun and not self._held_back

    def text(self, name: str, /, **parameters: Any) -> str:
        """A named statement with its parameters filled in."""
        statement = self._statements[name]
        return statement.text % tuple([literal(parameters[parameter]) for parameter in statement.parameters])

    def defer(self, name: str, /, **parameters: Any) -> None:
        """Run a named statement before whatever is sent next; nobody waits for its answer."""
        self._held_back.append(self.text(name, **parameters))

    async def send(self, *texts: str) -> list[Result]:
        """Run statements in the transaction; the result of each."""
        begin = _BEGIN_SNAPSHOT if self._mode is Mode.SNAPSHOT else _BEGIN
        before = self._held_back if self._begun else [*begin, *self._held_back]
        self._begun, self._held_back = True, []
        results = await self._link.send(*before, *texts)
        return results[len(before) :]

    async def send_and_commit(self, *texts: str) -> list[Result]:
        """Run the last statements of a call. Where the call is all there is, the COMMIT goes out with them."""
        if self._mode is not Mode.SINGLE:
            return await self.send(*texts)
        self.committing = True
        results = await self.send(*texts, "COMMIT")
        self._begun = False
        return results[:-1]

    async def send_alone(self, *texts: str) -> list[Result]:
        """Run one statement that writes, with others that only prepare or read, without a transaction."""
        self.committing = True
        return await self._link.send(*texts)

    @asynccontextmanager
    async def in_transaction(self) -> AsyncIterator[None]:
        """Group statements into one transaction, even in autocommit mode."""
        if self._mode is Mode.SINGLE:
            self._mode = Mode.WHOLE
        yield

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sql:
        """Rows as a derived table, as this server likes it best."""
        return table(columns, rows, as_values=self._link.server.name == "mariadb")

    @property
    def largest(self) -> int:
        """How many bytes one message may have."""
        return self._link.largest
