"""Pipelined statements: several in one message, to save round trips.

A transaction begins with its first statement. Statements whose result is not needed are deferred and sent with the next
one, at the latest with the COMMIT, so that a claim or a settle takes two round trips.
"""

import enum
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from holdfast.store.mysql.driver import MysqlConnection, Result
from holdfast.store.mysql.literal import Sql, literal, table
from holdfast.store.mysql.rows import job_row
from holdfast.store.sql.codec import Row
from holdfast.store.sql.tx import SqlTx
from holdfast.store.statements import Statements

# Set for each transaction instead of once per connection, because a proxy may switch the connection.
_BEGIN = ("SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION")
_BEGIN_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)

_FINDS = frozenset(
    {"find_live", "find_dead", "find_dead_of", "find_dead_alike", "find_history", "find_history_of", "get"}
)
_JOBS = _FINDS | {"held_by_ids", "lock_held_by_ids", "watched"}
"""Statements that return jobs."""

_READS = _FINDS | {
    "now", "next_due", "workers", "worker_page", "count_workers_of", "lanes", "counts_live", "counts_dead",
    "still_held", "steps", "step_page", "tenant", "api_key",
    "changes_after", "changes_at", "change_numbers", "change_log_range", "rollup_cursor", "rollups", "served",
    "census", "dead_census",
    "queues", "held_counts", "limited_tenants", "dispatch_settings_version", "limited", "weights", "pauses",
}  # fmt: skip
"""Statements that lock nothing and so need no transaction."""

_WRITES = frozenset({"renew", "save_progress"})
"""Statements that make up a whole call and so need no transaction when sent alone."""


class Mode(enum.Enum):
    """Kind of a transaction."""

    WHOLE = enum.auto()
    SINGLE = enum.auto()
    """Single call, which needs no transaction if it is one statement."""
    SNAPSHOT = enum.auto()
    """Reads on one consistent snapshot."""


class PipelinedTx(SqlTx):
    """Transaction that pipelines its statements on a connection."""

    def __init__(self, connection: MysqlConnection, statements: Statements, mode: Mode) -> None:
        super().__init__()
        self.committing = False
        """True if the last message may have been committed even if its response is lost."""
        self._connection = connection
        self._statements = statements
        self._mode = mode
        self._begun = False
        self._deferred: list[str] = []

    async def commit(self) -> None:
        """Send deferred statements and commit."""
        if self._begun or self._deferred:
            self.committing = self._mode is not Mode.SNAPSHOT
            await self.send("COMMIT")

    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""
        text = self.text(name, **parameters)
        (result,) = await (self._connection.send(text) if name in _READS and self.alone else self.send(text))
        return [job_row(row) for row in result.rows] if name in _JOBS else result.rows

    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of matched rows."""
        text = self.text(name, **parameters)
        (result,) = await (self.send_alone(text) if name in _WRITES and self.alone else self.send(text))
        return int(result.matched)

    @property
    def alone(self) -> bool:
        """True if the next statement may be sent without a transaction."""
        return self._mode is Mode.SINGLE and not self._begun and not self._deferred

    def text(self, name: str, /, **parameters: Any) -> str:
        """Return a named statement with its parameters filled in."""
        statement = self._statements[name]
        return statement.text % tuple([literal(parameters[parameter]) for parameter in statement.parameters])

    def defer(self, name: str, /, **parameters: Any) -> None:
        """Send a named statement with the next message; its result is ignored."""
        self._deferred.append(self.text(name, **parameters))

    async def send(self, *texts: str) -> list[Result]:
        """Run statements in the transaction; return the result of each."""
        begin = _BEGIN_SNAPSHOT if self._mode is Mode.SNAPSHOT else _BEGIN
        before = self._deferred if self._begun else [*begin, *self._deferred]
        self._begun, self._deferred = True, []
        results = await self._connection.send(*before, *texts)
        return results[len(before) :]

    async def send_and_commit(self, *texts: str) -> list[Result]:
        """Run the last statements of a call; in single mode the COMMIT is sent with them."""
        if self._mode is not Mode.SINGLE:
            return await self.send(*texts)
        self.committing = True
        results = await self.send(*texts, "COMMIT")
        self._begun = False
        return results[:-1]

    async def send_alone(self, *texts: str) -> list[Result]:
        """Run one writing statement, and others that only prepare or read, without a transaction."""
        self.committing = True
        return await self._connection.send(*texts)

    @asynccontextmanager
    async def in_transaction(self) -> AsyncIterator[None]:
        """Group statements into one transaction, even in autocommit mode."""
        if self._mode is Mode.SINGLE:
            self._mode = Mode.WHOLE
        yield

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Sql:
        """Return rows as a derived table in the fastest syntax of this server."""
        return table(columns, rows, as_values=self._connection.server.name == "mariadb")

    @property
    def max_message_bytes(self) -> int:
        """Maximum size of one message."""
        return self._connection.max_message_bytes
