"""Transactions for the caller's own statements, on a separate connection and thread.

Such a transaction holds the only write lock of the file between the caller's statements, so its duration is limited.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from queue import Empty
from typing import Any, TypeVar

import apsw

from holdfast.errors import OutcomeUnknown, Rejected, TransactionEnded
from holdfast.model.job import HeldJob
from holdfast.model.step import Step
from holdfast.store.sql.session import SqlSession, StatementResult
from holdfast.store.sql.steps import step_parameters
from holdfast.store.sql.user_statements import SQLITE
from holdfast.store.sqlite.batched_statements import BatchedStatements
from holdfast.store.sqlite.connection import connect
from holdfast.store.sqlite.errors import FAILED, translate
from holdfast.store.sqlite.thread import ConnectionThread
from holdfast.store.sqlite.transaction import roll_back

MAX_DURATION_S = 3.0
"""Maximum duration of a transaction: less than the timeout of the write lock."""

_PROGRESS_STEPS = 1_000
"""Number of SQLite instructions between checks of the duration."""

_FORBIDDEN = (apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT, apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH)

T = TypeVar("T")


class SessionThread(ConnectionThread):
    """Thread that rolls back slow transactions, even while the event loop is busy."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._until: float | None = None
        self._running_user_sql = False
        connection.authorizer = self._authorize
        connection.set_progress_handler(self._overdue, _PROGRESS_STEPS)
        super().__init__(connection, "holdfast sqlite session")

    @property
    def open(self) -> bool:
        """True while a transaction is open."""
        return self._until is not None

    def begin(self, db: apsw.Connection) -> None:
        """Take the write lock and start the time limit."""
        _control(db, "BEGIN IMMEDIATE")
        self._until = time.monotonic() + MAX_DURATION_S

    def commit(self, db: apsw.Connection) -> None:
        """Commit the transaction."""
        _control(db, "COMMIT")
        self._until = None

    def roll_back(self, db: apsw.Connection) -> None:
        """Roll back the transaction, if one is open."""
        self._until = None
        roll_back(db)

    def run(self, db: apsw.Connection, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run a caller's statement; it can neither commit nor roll back."""
        before = db.total_changes()
        self._running_user_sql = True
        try:
            rows = [tuple(row) for row in db.execute(sql, args)]
        finally:
            self._running_user_sql = False
            if self._overdue():
                self.roll_back(db)
        return StatementResult(rows, db.changes() if db.total_changes() != before else 0)

    def _authorize(self, operation: int, *_: object) -> int:
        return apsw.SQLITE_DENY if self._running_user_sql and operation in _FORBIDDEN else apsw.SQLITE_OK

    def _overdue(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def _serve(self) -> None:
        while True:
            try:
                left = None if self._until is None else max(0.0, self._until - time.monotonic())
                run = self._calls.get(timeout=left)
            except Empty:
                self.roll_back(self._connection)
                continue
            if run is None:
                break
            run()
        self.roll_back(self._connection)
        self._connection.close()


class SqliteSession(SqlSession):
    """Session on SQLite."""

    def __init__(self, thread: SessionThread, file: str, held: HeldJob, key: str) -> None:
        super().__init__(held, key, SQLITE)
        self._thread = thread
        self._file = file

    async def statement(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run a statement."""
        return await self._call(lambda db: self._thread.run(db, sql, args))

    async def begin(self, statements: BatchedStatements) -> None:
        """Take the write lock, check that the worker holds the job, and read the guard row."""
        job = self.held.id.bytes

        def work(db: apsw.Connection) -> None:
            self._thread.begin(db)
            if not db.execute(statements["still_held"].text, (job, self.held.fence, self.held.worker)).fetchall():
                raise self.lost()
            guard: list[Any] = db.execute(statements["guard"].text, (job, self.key)).fetchall()
            if guard:
                self.recorded = guard[0][0]
                self._thread.roll_back(db)

        await self._thread.call(self._translating(work))

    async def commit(self, statements: BatchedStatements, guard: Step) -> None:
        """Write the guard row and commit, unless the transaction has ended."""
        statement = statements["record_step"]
        values = {"key": self.key, **step_parameters(self.held, guard), "id": self.held.id.bytes}

        def work(db: apsw.Connection) -> None:
            db.execute(statement.text, [values[name] for name in statement.parameters])
            if db.changes() != 1:
                raise self.lost()
            try:
                self._thread.commit(db)
            except apsw.IOError as error:
                raise OutcomeUnknown(f"{self.label}: the disk failed at the commit ({error})") from error

        await self._call(work)

    async def close(self) -> None:
        """Roll back the transaction, if it is still open."""
        await self._thread.call(self._thread.roll_back)

    async def _call(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` in the transaction; raise `TransactionEnded` if it is not open."""

        def run(db: apsw.Connection) -> T:
            self._require_open()
            try:
                return work(db)
            except TypeError as error:  # a value cannot be bound
                raise Rejected(f"{self.label}: {error}") from error
            except FAILED as error:
                self._require_open()
                if isinstance(error, apsw.SQLError | apsw.ConstraintError | apsw.BindingsError | apsw.AuthError):
                    raise Rejected(f"{self.label}: the database refused a statement: {error}") from error
                raise translate(error, self._file) from error
            finally:
                if not db.in_transaction:
                    self._thread.roll_back(db)

        return await self._thread.call(run)

    def _require_open(self) -> None:
        if not self._thread.open:
            raise TransactionEnded(
                f"{self.label} was rolled back: it was open for longer than {MAX_DURATION_S:g} s, or a statement ended "
                "it. On SQLite it blocks all other writers: do slow work before or after the transaction"
            )

    def _translating(self, work: Callable[[apsw.Connection], T]) -> Callable[[apsw.Connection], T]:
        def run(db: apsw.Connection) -> T:
            try:
                return work(db)
            except FAILED as error:
                raise translate(error, self._file) from error

        return run


class Sessions:
    """Factory for sessions. One session is open at a time, because there is one write lock."""

    def __init__(self, file: Path, statements: BatchedStatements) -> None:
        self._file = file
        self._statements = statements
        self._lock = asyncio.Lock()
        self._thread: SessionThread | None = None

    @asynccontextmanager
    async def open(self, held: HeldJob, key: str) -> AsyncIterator[SqliteSession]:
        """Open a session; see `Store.session`."""
        async with self._lock:
            if self._thread is None:
                self._thread = SessionThread(await asyncio.to_thread(connect, self._file))
            session = SqliteSession(self._thread, str(self._file), held, key)
            try:
                await session.begin(self._statements)
                yield session
                if session.recorded is None:
                    await session.commit(self._statements, session.guard())
            finally:
                await session.close()

    async def aclose(self) -> None:
        """Close the connection."""
        if self._thread is not None and self._thread.in_owner_process:
            await self._thread.aclose()


def _control(db: apsw.Connection, statement: str) -> None:
    """Run a transaction control statement, bypassing the statement cache that callers use."""
    db.execute(statement, can_cache=False)
