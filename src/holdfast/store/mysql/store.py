"""Store on MySQL and MariaDB."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Self, TypeVar

from holdfast.errors import Contention, HoldfastError, OutcomeUnknown, SchemaMismatch
from holdfast.model.job import HeldJob
from holdfast.store import migrate
from holdfast.store.migrate import AppliedMigration
from holdfast.store.mysql.driver import MysqlConnection
from holdfast.store.mysql.errors import DRIVER, ambiguous, read_only, transient, translate
from holdfast.store.mysql.literal import literal
from holdfast.store.mysql.pipeline import Mode
from holdfast.store.mysql.pool import Pool
from holdfast.store.mysql.session import Sessions
from holdfast.store.mysql.tx import MysqlTx
from holdfast.store.mysql.url import read_url
from holdfast.store.notify.polling import probe_ready
from holdfast.store.notify.wakeup import Bus, Hub
from holdfast.store.port.store import PoolUse, Retention, ServerInfo, Session, Store, Work
from holdfast.store.port.wakeups import Subscription
from holdfast.store.statements import Statements

T = TypeVar("T")

MysqlWork = Callable[[MysqlTx], Awaitable[T]]
"""Work that may use methods of this dialect."""

CLOCK = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))"
"""Database clock, read once per statement and independent of the session's time zone."""

_MAX_ATTEMPTS = 10
_RETRY_TIMEOUT_S = 4.0
"""Time after which a conflict is not retried: callers get an answer within seconds."""

_MAX_POLL_INTERVAL_S = 0.5
_COMPACT_BATCH_SIZE = 20
"""Number of claims to check in one transaction."""

_MIGRATION_TIMEOUT_S = 3600.0
# Lock names are global to the server, so the name includes a hash of the database name.
_MIGRATION_LOCK = "CONCAT('holdfast_migrate_', LEFT(SHA2(DATABASE(), 256), 16))"
_RECORD = "INSERT INTO holdfast_schema (version, name, checksum) VALUES (%s, %s, %s)"


class _Retry(Exception):
    """The transaction had no effect and can be retried."""

    def __init__(self, cause: BaseException, *, immediately: bool = False) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.immediately = immediately


class MysqlStore(Store):
    """Store on MySQL 8.0 and MariaDB 10.6 or newer."""

    def __init__(self, pool: Pool, sessions: Pool, statements: Statements) -> None:
        self._pool = pool
        self._sessions = Sessions(sessions, statements)
        self._statements = statements
        probe = probe_ready(lambda queues: self.single(lambda tx: tx.ready_queues(queues)))
        self._hub = Hub(probe=probe, max_poll_interval_s=_MAX_POLL_INTERVAL_S, finds_all=True)

    @classmethod
    async def open(cls, url: str, *, clock: str | None = None, pool_size: int = 10) -> Self:
        """Connect to the database.

        Raises:
            Misconfigured: the URL, the credentials or the server version are wrong.
            Unavailable: the server cannot be reached.
        """
        address = read_url(url)
        statements = _statements(clock or CLOCK)
        pool = Pool(lambda: MysqlConnection.connect(address), pool_size)
        pool.release(await pool.acquire())
        sessions = Pool(lambda: MysqlConnection.connect(address, idle_in_transaction=None), pool_size, wait=30.0)
        return cls(pool, sessions, statements)

    async def run(self, work: Work[T]) -> T:
        return await self._transact(work, Mode.WHOLE)

    async def read(self, work: Work[T]) -> T:
        return await self._transact(work, Mode.SNAPSHOT)

    async def single(self, work: Work[T]) -> T:
        return await self._transact(work, Mode.SINGLE)

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Session]:
        return self._sessions.open(held, key)

    @property
    def has_push(self) -> bool:
        return self._hub.probe is None

    def listen(self, queues: Sequence[str] | None) -> Subscription:
        return self._hub.listen(queues)

    def join(self, bus: Bus) -> None:
        bus.join(self._hub)

    async def installation(self) -> str:
        async def read(connection: MysqlConnection) -> str:
            (found,) = await connection.send(
                "SELECT CAST(applied_at AS CHAR) FROM holdfast_schema ORDER BY version LIMIT 1"
            )
            return str(found.rows[0][0])

        return await self._on_connection(read)

    async def migrate(self) -> list[str]:
        return await self._on_connection(_migrate)

    async def check_schema(self) -> None:
        migrate.require_current(migrate.migrations("mysql"), await self._on_connection(_applied))

    async def maintain_tables(self, rule: Retention) -> None:
        # InnoDB reuses the space of deleted rows by itself; only claims need maintenance.
        del rule
        checked = _COMPACT_BATCH_SIZE
        while checked == _COMPACT_BATCH_SIZE:
            checked = await self._transact(lambda tx: tx.compact_claims(_COMPACT_BATCH_SIZE), Mode.WHOLE)

    async def info(self) -> ServerInfo:
        async def server(connection: MysqlConnection) -> ServerInfo:
            return ServerInfo(connection.server.name, connection.server.version, pooled=False, listens=False)

        return await self._on_connection(server)

    def pool(self) -> PoolUse:
        return PoolUse(self._pool.busy, self._pool.idle, self._pool.size)

    async def aclose(self) -> None:
        await self._hub.aclose()
        await self._sessions.aclose()
        await self._pool.aclose()

    async def _transact(self, work: MysqlWork[T], mode: Mode) -> T:
        loop = asyncio.get_running_loop()
        until = loop.time() + _RETRY_TIMEOUT_S
        conflicts = 0
        while True:
            try:
                return await self._attempt(work, mode)
            except _Retry as retry:
                if retry.immediately:  # terminates: the pool loses a stale connection each time
                    continue
                conflicts += 1
                if conflicts == _MAX_ATTEMPTS or loop.time() > until:
                    times = "once" if conflicts == 1 else f"{conflicts} times"
                    raise Contention(
                        f"the transaction failed {times} because of conflicts ({retry}), nothing was changed: try again"
                    ) from retry.cause
                await asyncio.sleep(random.uniform(0, 0.0025 * 2**conflicts))

    async def _attempt(self, work: MysqlWork[T], mode: Mode) -> T:
        began = asyncio.get_running_loop().time()
        connection = await self._pool.acquire()
        sent_before = connection.messages_sent
        tx = MysqlTx(connection, self._statements, mode)
        try:
            result = await work(tx)
            await tx.commit()
        except HoldfastError:
            await self._roll_back(connection)
            raise
        except DRIVER as error:
            stale = 0 < sent_before == connection.messages_sent - 1
            if read_only(error):
                stale = connection.opened_at < began
                connection.close()
            await self._roll_back(connection)
            raise self._failure(error, tx, stale=stale) from error
        except BaseException:  # cancelled or failed: discard its effects
            connection.close()
            self._pool.release(connection)
            raise
        self._pool.release(connection)
        self._hub.committed(tx.ready_lanes, changed=tx.changed)
        return result

    @staticmethod
    def _failure(error: BaseException, tx: MysqlTx, *, stale: bool) -> Exception:
        """Return what a driver error means: a retry, or an error for the caller."""
        if transient(error):
            return _Retry(error)
        if stale and read_only(error):
            # The connection was opened while the server was read-only.
            return _Retry(error, immediately=True)
        if tx.committing and ambiguous(error):
            return OutcomeUnknown(f"the connection broke while the database was committing: {translate(error)}")
        if stale and ambiguous(error) and not isinstance(error, TimeoutError):
            # This was the first message on an idle connection, which was already dead.
            return _Retry(error, immediately=True)
        return translate(error)

    async def _roll_back(self, connection: MysqlConnection) -> None:
        """Roll back and release a connection after a failure; close it if its state is unknown."""
        try:
            if connection.usable():
                await connection.send("ROLLBACK", timeout=2)
        except DRIVER:
            connection.close()
        finally:
            self._pool.release(connection)

    async def _on_connection(self, work: Callable[[MysqlConnection], Awaitable[T]]) -> T:
        """Run schema or admin work on a connection, outside a transaction."""
        connection = await self._pool.acquire()
        try:
            return await work(connection)
        except DRIVER as error:
            connection.close()
            raise translate(error) from error
        except BaseException:
            connection.close()
            raise
        finally:
            self._pool.release(connection)


async def _migrate(connection: MysqlConnection) -> list[str]:
    await connection.send(f"SET SESSION {connection.server.statement_limit} = 0, SESSION lock_wait_timeout = 3600")
    (lock,) = await connection.send(f"SELECT GET_LOCK({_MIGRATION_LOCK}, 60)", timeout=_MIGRATION_TIMEOUT_S)
    if lock.rows[0][0] != 1:
        raise Contention("another node has been migrating the schema for a minute; try again when it has finished")
    await connection.send(
        "CREATE TABLE IF NOT EXISTS holdfast_schema (version INT PRIMARY KEY, name VARCHAR(128) NOT NULL, "
        "checksum VARCHAR(64) NOT NULL, applied_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) ENGINE = InnoDB"
    )
    todo = migrate.pending(migrate.migrations("mysql"), await _applied(connection))
    for migration in todo:
        for statement in migration.statements():
            await connection.send(statement, timeout=_MIGRATION_TIMEOUT_S)
        await connection.send(_RECORD % tuple(map(literal, (migration.version, migration.name, migration.checksum))))
    connection.close()  # releases the lock and discards the session settings
    return [f"{migration.version:04d}_{migration.name}" for migration in todo]


async def _applied(connection: MysqlConnection) -> list[AppliedMigration]:
    try:
        (found,) = await connection.send("SELECT version, name, checksum FROM holdfast_schema ORDER BY version")
    except DRIVER as error:
        if isinstance(translate(error), SchemaMismatch):  # no such table: version 0
            return []
        raise
    return [AppliedMigration(*row) for row in found.rows]


@cache
def _statements(clock: str) -> Statements:
    """Load the statements once per process and clock."""
    return Statements("mysql", placeholder=lambda *_: "%s", clock=clock, repeat_positions=True)
