"""Transactions for the caller's own statements, on connections apart from the engine's.

A handler may keep its transaction open while it asks the engine for something: with connections in common, enough of
them would wait for each other.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.errors import Contention, HoldfastError, OutcomeUnknown, Rejected, Unavailable
from holdfast.model.job import HeldJob
from holdfast.store.mysql.driver import Link
from holdfast.store.mysql.errors import DRIVER, ambiguous, code_of, transient, translate
from holdfast.store.mysql.pipeline import Mode
from holdfast.store.mysql.pool import Pool
from holdfast.store.mysql.tx import MysqlTx
from holdfast.store.sql.session import SqlSession, StatementResult
from holdfast.store.sql.steps import recording
from holdfast.store.sql.user_statements import MYSQL
from holdfast.store.statements import Statements

# A savepoint is gone if the transaction it was set in is.
_MARK = "SAVEPOINT holdfast_session"
_UNMARK = "RELEASE SAVEPOINT holdfast_session"

# Seconds the caller may do nothing in its transaction: it keeps its job from being cancelled or reaped.
_WATCH = "SET SESSION wait_timeout = 15"
_UNWATCH = "SET SESSION wait_timeout = DEFAULT"

_NO_SAVEPOINT = 1305
_BAD_ARGUMENTS = (TypeError, ValueError, KeyError, AttributeError)
"""What the driver raises when the arguments do not fit the placeholders."""


class MysqlSession(SqlSession):
    """See `holdfast.store.port.store.Session`."""

    def __init__(self, link: Link, held: HeldJob, key: str) -> None:
        super().__init__(held, key, MYSQL)
        self._link = link

    async def statement(self, sql: str, args: tuple[Any, ...]) -> StatementResult:
        """Run it."""
        try:
            text = self._link.filled(sql, args)
        except _BAD_ARGUMENTS as error:
            raise Rejected(f"{self.named}: the arguments do not fit the statement: {error}") from error
        try:
            result = (await self._link.send(text))[-1]
        except DRIVER as error:
            raise self.fault(error) from error
        if not self._link.in_transaction:
            raise self.ended()
        rows = [tuple(row) for row in result.rows]
        return StatementResult(rows, 0 if rows else max(0, int(result.matched)))

    def fault(self, error: BaseException) -> HoldfastError:
        """Our error for one of the driver's."""
        if transient(error):
            return Contention(f"{self.named}: the database gave up on a conflict ({error}); try again")
        if ambiguous(error):
            return Unavailable(f"{self.named}: {translate(error)}")
        return Rejected(f"{self.named}: the database refused a statement: {error}")


class Sessions:
    """Factory for sessions."""

    def __init__(self, pool: Pool, statements: Statements) -> None:
        self._pool = pool
        self._statements = statements

    @asynccontextmanager
    async def open(self, held: HeldJob, key: str) -> AsyncIterator[MysqlSession]:
        """Open a session; see `Store.session`."""
        link = await self._pool.acquire()
        session = MysqlSession(link, held, key)
        tx = MysqlTx(link, self._statements, Mode.WHOLE)
        clean = False
        try:
            await self._begin(session, tx)
            yield session
            if session.recorded is None:
                await self._commit(session, tx)
            clean = not session.soiled
        except Exception:
            clean = not session.soiled and await _rolled_back(link)
            raise
        finally:
            if not clean:  # or cancelled in the middle of a statement
                link.close()
            self._pool.release(link)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()

    @staticmethod
    async def _begin(session: MysqlSession, tx: MysqlTx) -> None:
        held = session.held
        asked = {"id": held.id, "key": session.key.encode()}
        try:
            # Read after the lock is held: whoever committed this before has let it go by then.
            *_, mine, guard = await tx.send(
                _WATCH, _MARK, tx.text("lock_held", **held._asdict()), tx.text("guard", **asked)
            )
            if not mine.rows:
                raise session.lost()
            if guard.rows:
                session.recorded = guard.rows[0][0]
                await tx.send("ROLLBACK", _UNWATCH)
        except DRIVER as error:
            raise session.fault(error) from error

    @staticmethod
    async def _commit(session: MysqlSession, tx: MysqlTx) -> None:
        guard = session.guard()
        record = tx.text("record_step", key=session.key.encode(), **recording(session.held, guard))
        try:
            await tx.send(_UNMARK, record, _UNWATCH, "COMMIT")
        except DRIVER as error:
            if code_of(error) == _NO_SAVEPOINT:
                raise session.ended() from error
            if ambiguous(error):
                raise OutcomeUnknown(
                    f"{session.named}: the connection broke at the commit: {translate(error)}"
                ) from error
            raise session.fault(error) from error


async def _rolled_back(link: Link) -> bool:
    try:
        if link.usable():
            await link.send("ROLLBACK", _UNWATCH, timeout=2)
    except DRIVER:
        return False
    return link.usable()
