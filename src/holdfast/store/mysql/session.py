"""Transactions for the caller's own statements, on a separate pool of connections.

A handler may call the engine while its transaction is open. With a shared pool, enough such handlers would deadlock.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.errors import Contention, HoldfastError, OutcomeUnknown, Rejected, Unavailable
from holdfast.model.job import HeldJob
from holdfast.store.mysql.driver import MysqlConnection
from holdfast.store.mysql.errors import DRIVER, ambiguous, code_of, read_only, transient, translate
from holdfast.store.mysql.pipeline import Mode
from holdfast.store.mysql.pool import Pool
from holdfast.store.mysql.tx import MysqlTx
from holdfast.store.sql.session import SqlSession, StatementResult
from holdfast.store.sql.steps import step_parameters
from holdfast.store.sql.user_statements import MYSQL
from holdfast.store.statements import Statements

# A savepoint ends with its transaction: releasing it fails if a statement ended the transaction.
_SET_SAVEPOINT = "SAVEPOINT holdfast_session"
_RELEASE_SAVEPOINT = "RELEASE SAVEPOINT holdfast_session"

# Idle timeout of the caller's transaction, because an open one blocks cancelling and reaping the job.
_SET_IDLE_TIMEOUT = "SET SESSION wait_timeout = 15"
_RESET_IDLE_TIMEOUT = "SET SESSION wait_timeout = DEFAULT"

_NO_SAVEPOINT = 1305
_BAD_ARGUMENTS = (TypeError, ValueError, KeyError, AttributeError)
"""Errors of the driver if the arguments do not match the placeholders."""


class MysqlSession(SqlSession):
    """Session on MySQL or MariaDB."""

    def __init__(self, connection: MysqlConnection, held: HeldJob, key: str) -> None:
        super().__init__(held, key, MYSQL)
        self._connection = connection

    async def statement(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run a statement."""
        try:
            text = self._connection.format(sql, args)
        except _BAD_ARGUMENTS as error:
            raise Rejected(f"{self.label}: the arguments do not match the statement: {error}") from error
        try:
            result = (await self._connection.send(text))[-1]
        except DRIVER as error:
            raise self.translate(error) from error
        if not self._connection.in_transaction:
            raise self.ended()
        rows = [tuple(row) for row in result.rows]
        return StatementResult(rows, 0 if rows else max(0, int(result.matched)))

    def translate(self, error: BaseException) -> HoldfastError:
        """Return our error for a driver error."""
        if transient(error):
            return Contention(f"{self.label}: the database reported a conflict ({error}); try again")
        if read_only(error):
            self.tainted = True  # the session stays read-only
            return Unavailable(f"{self.label}: {translate(error)}")
        if ambiguous(error):
            return Unavailable(f"{self.label}: {translate(error)}")
        return Rejected(f"{self.label}: the database refused a statement: {error}")


class Sessions:
    """Factory for sessions."""

    def __init__(self, pool: Pool, statements: Statements) -> None:
        self._pool = pool
        self._statements = statements

    @asynccontextmanager
    async def open(self, held: HeldJob, key: str) -> AsyncIterator[MysqlSession]:
        """Open a session; see `Store.session`."""
        connection = await self._pool.acquire()
        session = MysqlSession(connection, held, key)
        tx = MysqlTx(connection, self._statements, Mode.WHOLE)
        clean = False
        try:
            await self._begin(session, tx)
            yield session
            if session.recorded is None:
                await self._commit(session, tx)
            clean = not session.tainted
        except Exception:
            clean = not session.tainted and await _roll_back(connection)
            raise
        finally:
            if not clean:  # or cancelled in the middle of a statement
                connection.close()
            self._pool.release(connection)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    @staticmethod
    async def _begin(session: MysqlSession, tx: MysqlTx) -> None:
        held = session.held
        try:
            # Read the guard row after the lock is held: a transaction that committed it has released the lock by then.
            *_, held_row, guard = await tx.send(
                _SET_IDLE_TIMEOUT,
                _SET_SAVEPOINT,
                tx.text("lock_held", **held._asdict()),
                tx.text("guard", id=held.id, key=session.key.encode()),
            )
            if not held_row.rows:
                raise session.lost()
            if guard.rows:
                session.recorded = guard.rows[0][0]
                await tx.send("ROLLBACK", _RESET_IDLE_TIMEOUT)
        except DRIVER as error:
            raise session.translate(error) from error

    @staticmethod
    async def _commit(session: MysqlSession, tx: MysqlTx) -> None:
        guard = session.guard()
        record = tx.text("record_step", key=session.key.encode(), **step_parameters(session.held, guard))
        try:
            await tx.send(_RELEASE_SAVEPOINT, record, _RESET_IDLE_TIMEOUT, "COMMIT")
        except DRIVER as error:
            if code_of(error) == _NO_SAVEPOINT:
                raise session.ended() from error
            if ambiguous(error):
                raise OutcomeUnknown(
                    f"{session.label}: the connection broke at the commit: {translate(error)}"
                ) from error
            raise session.translate(error) from error


async def _roll_back(connection: MysqlConnection) -> bool:
    """Roll back; return False if the connection cannot be reused."""
    try:
        if connection.usable():
            await connection.send("ROLLBACK", _RESET_IDLE_TIMEOUT, timeout=2)
    except DRIVER:
        return False
    return connection.usable()
