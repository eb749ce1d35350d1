"""Transactions for the caller's own statements, on a connection and a thread of their own.

Such a transaction holds the file's one write lock while the caller thinks, so it may not stay open for long.
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
from holdfast.store.sql.steps import recording
from holdfast.store.sql.user_statements import SQLITE
from holdfast.store.sqlite.batched_statements import BatchedStatements
from holdfast.store.sqlite.connection import connect
from holdfast.store.sqlite.errors import FAILED, translate
from holdfast.store.sqlite.thread import ConnectionThread
from holdfast.store.sqlite.transaction import roll_back

LONGEST = 3.0
"""Seconds a transaction may be open: less than others wait for the write lock before they give up."""

_STEPS = 1_000
"""Instructions of SQLite between two looks at the clock."""

_FORBIDDEN = (apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT, apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH)

T = TypeVar("T")


class SessionThread(ConnectionThread):
    """Rolls back by itself what stays open too long, also while the event loop is busy with something else."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._until: float | None = None
        self._foreign = False
        connection.authorizer = self._authorize
        connection.set_progress_handler(self._overdue, _STEPS)
        super().__init__(connection, "holdfast sqlite session")

    @property
    def open(self) -> bool:
        """Whether there is a transaction."""
        return self._until is not None

    def begin(self, db: apsw.Connection) -> None:
        """Take the write lock; the time counts from here."""
        _control(db, "BEGIN IMMEDIATE")
        self._until = time.monotonic() + LONGEST

    def commit(self, db: apsw.Connection) -> None:
        """Make it last."""
        _control(db, "COMMIT")
        self._until = None

    def roll_back(self, db: apsw.Connection) -> None:
        """Leave nothing open."""
        self._until = None
        roll_back(db)

    def run(self, db: apsw.Connection, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run a caller's statement, which can neither commit nor roll back."""
        before = db.total_changes()
        self._foreign = True
        try:
            rows = [tuple(row) for row in db.execute(sql, args)]
        finally:
            self._foreign = False
            if self._overdue():
                self.roll_back(db)
        return StatementResult(rows, db.changes() if db.total_changes() != before else 0)

    def _authorize(self, operation: int, *_: object) -> int:
        return apsw.SQLITE_DENY if self._foreign and operation in _FORBIDDEN else apsw.SQLITE_OK

    def _overdue(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def _serve(self) -> None:
        while True:
            try:
                left = None if self._until is None else max(0.0, self._until - time.monotonic())
                run = self._asked.get(timeout=left)
            except Empty:
                self.roll_back(self._connection)
                continue
            if run is None:
                break
            run()
        self.roll_back(self._connection)
        self._connection.close()


class SqliteSession(SqlSession):
    """See `holdfast.store.port.store.Session`."""

    def __init__(self, thread: SessionThread, file: str, held: HeldJob, key: str) -> None:
        super().__init__(held, key, SQLITE)
        self._thread = thread
        self._file = file

    async def statement(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run it."""
        return await self._call(lambda db: self._thread.run(db, sql, args))

    async def begin(self, statements: BatchedStatements) -> None:
        """Take the write lock, see whose the job is and whether this was done before."""
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
        """Write the guard and commit, if nothing has ended the transaction before."""
        statement = statements["record_step"]
        given = {"key": self.key, **recording(self.held, guard), "id": self.held.id.bytes}

        def work(db: apsw.Connection) -> None:
            db.execute(statement.text, [given[name] for name in statement.parameters])
            if db.changes() != 1:
                raise self.lost()
            try:
                self._thread.commit(db)
            except apsw.IOError as error:
                raise OutcomeUnknown(f"{self.named}: the disk failed at the commit ({error})") from error

        await self._call(work)

    async def close(self) -> None:
        """Leave nothing open."""
        await self._thread.call(self._thread.roll_back)

    async def _call(self, work: Callable[[apsw.Connection], T]) -> T:
        """Do this in the transaction, if it is open; say so if it ends it."""

        def run(db: apsw.Connection) -> T:
            self._require_open()
            try:
                return work(db)
            except TypeError as error:  # of a value that cannot be bound
                raise Rejected(f"{self.named}: {error}") from error
            except FAILED as error:
                self._require_open()
                if isinstance(error, apsw.SQLError | apsw.ConstraintError | apsw.BindingsError | apsw.AuthError):
                    raise Rejected(f"{self.named}: the database refused a statement: {error}") from error
                raise translate(error, self._file) from error
            finally:
                if not db.in_transaction:
                    self._thread.roll_back(db)

        return await self._thread.call(run)

    def _require_open(self) -> None:
        if not self._thread.open:
            raise TransactionEnded(
                f"{self.named} was open for longer than {LONGEST:g} s, or a statement ended it; it was rolled back, "
                "since on SQLite nobody else can write meanwhile: do what takes time before it or after it"
            )

    def _translating(self, work: Callable[[apsw.Connection], T]) -> Callable[[apsw.Connection], T]:
        def run(db: apsw.Connection) -> T:
            try:
                return work(db)
            except FAILED as error:
                raise translate(error, self._file) from error

        return run


class Sessions:
    """Opens them, one after the other: there is one write lock."""

    def __init__(self, file: Path, statements: BatchedStatements) -> None:
        self._file = file
        self._statements = statements
        self._turn = asyncio.Lock()
        self._thread: SessionThread | None = None

    @asynccontextmanager
    async def open(self, held: HeldJob, key: str) -> AsyncIterator[SqliteSession]:
        """Open a session; see `Store.session`."""
        async with self._turn:
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
        if self._thread is not None and self._thread.of_this_process:
            await self._thread.aclose()


def _control(db: apsw.Connection, statement: str) -> None:
    """Run a statement that a caller may not: prepared anew, so that none of theirs can be taken for it."""
    db.execute(statement, can_cache=False)
