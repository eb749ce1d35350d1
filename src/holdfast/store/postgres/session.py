"""Transactions for the caller's own statements, on a separate pool of connections.

A handler may call the engine while its transaction is open. With a shared pool, enough such handlers would deadlock.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from holdfast.errors import Contention, HoldfastError, OutcomeUnknown, Rejected, TransactionEnded, Unavailable
from holdfast.model.job import HeldJob
from holdfast.store.postgres import pool as pools
from holdfast.store.postgres.errors import LOST, READ_ONLY, TRANSIENT, translate
from holdfast.store.postgres.tx import PostgresTx
from holdfast.store.sql.session import SqlSession, StatementResult
from holdfast.store.sql.user_statements import POSTGRES
from holdfast.store.statements import Statements

IDLE_TIMEOUT = "15s"
"""Idle timeout of the caller's transaction; an open one blocks cancelling and reaping."""

_ACQUIRE_TIMEOUT_S = 30.0
_FAILED = (asyncpg.PostgresError, *LOST)


class PostgresSession(SqlSession):
    """Session on PostgreSQL."""

    def __init__(self, connection: asyncpg.Connection, held: HeldJob, key: str) -> None:
        super().__init__(held, key, POSTGRES)
        self._connection = connection

    async def statement(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run a prepared statement; the server rejects several statements in one text."""
        try:
            prepared = await self._connection.prepare(sql)
            rows = await prepared.fetch(*args)
        except _FAILED as error:
            raise self.translate(error) from error
        if not self._connection.is_in_transaction():
            raise self.ended()
        count = prepared.get_statusmsg().rsplit(" ", 1)[-1]
        return StatementResult([tuple(row) for row in rows], int(count) if count.isdecimal() else 0)

    def translate(self, error: BaseException) -> HoldfastError:
        """Return our error for a driver error of a statement."""
        if isinstance(error, TRANSIENT):
            return Contention(f"{self.label}: the database reported a conflict ({error}); try again")
        if isinstance(error, READ_ONLY):
            self.tainted = True  # the session stays read-only
            return Unavailable(f"{self.label}: {translate(error)}")
        broken = isinstance(error, LOST) and not isinstance(error, asyncpg.InterfaceError)
        if broken or pools.is_gone(self._connection):
            return Unavailable(f"{self.label}: {translate(error) or error}")
        return Rejected(f"{self.label}: the database refused a statement: {error}")


class Sessions:
    """Factory for sessions."""

    def __init__(self, url: str, statements: Statements, *, pooled: bool, size: int) -> None:
        self._url = url
        self._statements = statements
        self._pooled = pooled
        self._size = size
        self._pool: asyncpg.Pool | None = None

    @asynccontextmanager
    async def open(self, held: HeldJob, key: str) -> AsyncIterator[PostgresSession]:
        """Open a session; see `Store.session`."""
        pool, connection = await self._acquire()
        session = PostgresSession(connection, held, key)
        tx = PostgresTx(connection, self._statements, autocommit=False)
        clean = False
        try:
            await self._begin(session, connection, tx)
            yield session
            if session.recorded is None:
                await self._commit(session, connection, tx)
            clean = not session.tainted
        except Exception:
            clean = not session.tainted and await _roll_back(connection)
            raise
        finally:
            if not clean:  # or cancelled in the middle of a statement
                pools.terminate(connection)
            await pool.release(connection)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            await pools.close_quietly(self._pool)

    async def _begin(self, session: PostgresSession, connection: asyncpg.Connection, tx: PostgresTx) -> None:
        held = session.held
        try:
            await connection.execute(pools.BEGIN_POOLED if self._pooled else pools.BEGIN)
            if not await tx.rows("lock_held", **held._asdict()):
                raise session.lost()
            # Read after the lock is held: a transaction that committed the guard row has released it by then.
            ((session.recorded, *_),) = await tx.rows("guard", id=held.id, key=session.key, idle=IDLE_TIMEOUT)
            if session.recorded is not None:
                await connection.execute("ROLLBACK")
        except TRANSIENT as error:
            raise Contention(f"{session.label}: job {held.id} was locked for too long ({error}); try again") from error
        except READ_ONLY as error:
            raise session.translate(error) from error
        except _FAILED as error:
            raise translate(error) or Unavailable(str(error)) from error

    @staticmethod
    async def _commit(session: PostgresSession, connection: asyncpg.Connection, tx: PostgresTx) -> None:
        guard = session.guard()
        committing = False
        try:
            if not await tx.record_step(session.held, guard):
                raise session.lost()
            committing = True
            if await connection.execute("COMMIT") != "COMMIT":
                raise TransactionEnded(f"the database rolled back {session.label}; nothing was committed")
        except TRANSIENT as error:
            raise Contention(f"{session.label}: the database reported a conflict ({error}); try again") from error
        except READ_ONLY as error:
            raise session.translate(error) from error
        except _FAILED as error:
            translated = translate(error) or Unavailable(str(error))
            lost = isinstance(error, LOST) and not isinstance(error, asyncpg.PostgresError)
            if committing and (lost or pools.is_gone(connection)):
                raise OutcomeUnknown(f"{session.label}: the connection broke at the commit: {translated}") from error
            raise translated from error

    async def _acquire(self) -> tuple[asyncpg.Pool, asyncpg.Connection]:
        try:
            if self._pool is None:
                self._pool = await pools.create_pool(self._url, pooled=self._pooled, size=self._size)
            return self._pool, await self._pool.acquire(timeout=_ACQUIRE_TIMEOUT_S)
        except TimeoutError as error:
            raise Unavailable(
                f"no connection was free for a transaction within {_ACQUIRE_TIMEOUT_S:.0f} s: "
                "the server is slow or down, or too many transactions are open for too long"
            ) from error
        except _FAILED as error:
            raise pools.connect_error(error) from error


async def _roll_back(connection: asyncpg.Connection) -> bool:
    """Roll back; return False if the connection cannot be reused."""
    try:
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK", timeout=2)
    except _FAILED:
        return False
    return not pools.is_gone(connection)
