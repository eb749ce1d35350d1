"""Store on PostgreSQL."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any, Self, TypeVar

import asyncpg

from holdfast.errors import Contention, HoldfastError, OutcomeUnknown, Unavailable
from holdfast.model.ids import new_worker_id
from holdfast.model.job import HeldJob
from holdfast.store import migrate
from holdfast.store.migrate import AppliedMigration
from holdfast.store.notify.notifications import Notifier
from holdfast.store.notify.polling import probe_ready
from holdfast.store.notify.wakeup import Bus, Hub
from holdfast.store.port.store import PoolUse, Retention, ServerInfo, Session, Store, Work
from holdfast.store.port.wakeups import Subscription
from holdfast.store.postgres import pool as pools
from holdfast.store.postgres.connection_cache import ConnectionCache
from holdfast.store.postgres.errors import LOST, READ_ONLY, TRANSIENT, translate
from holdfast.store.postgres.listen import Listener
from holdfast.store.postgres.session import Sessions
from holdfast.store.postgres.table_maintenance import TableMaintenance
from holdfast.store.postgres.tx import PostgresTx
from holdfast.store.statements import Statements

T = TypeVar("T")

CLOCK = "(SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint)"
"""Database clock; as a sub-select it is read once per statement and can use an index."""

_MAX_ATTEMPTS = 10
_RETRY_TIMEOUT_S = 5.0
"""Time after which a conflict is not retried: callers get an answer within seconds."""
_ACQUIRE_TIMEOUT_S = 10.0
_MIGRATION_LOCK = 0x686F6C64
_MIGRATION_TIMEOUT_S = 3_600.0
_MAX_POLL_INTERVAL_S = 0.5


class _StaleConnection(Exception):
    """The transaction had no effect: its connection was opened while the database was read-only."""


class PostgresStore(Store):
    """Store on PostgreSQL 13 and newer."""

    def __init__(self, url: str, pool: asyncpg.Pool, statements: Statements, *, pooled: bool, pool_size: int) -> None:
        self._url = url
        self._connections = ConnectionCache(pool)
        self._statements = statements
        self._pooled = pooled
        probe = probe_ready(lambda queues: self.single(lambda tx: tx.ready_queues(queues)))
        self._hub = Hub(probe=probe, max_poll_interval_s=_MAX_POLL_INTERVAL_S, finds_all=True)
        own_id = new_worker_id()
        self._notifier = Notifier(own_id, self._notify)
        self._listener = Listener(self._hub, lambda: pools.connect(url, pooled=False), own_id, probe)
        self._maintenance = TableMaintenance(self._connections)
        self._sessions = Sessions(url, statements, pooled=pooled, size=pool_size)

    @classmethod
    async def open(cls, url: str, *, clock: str | None = None, pool_size: int = 10) -> Self:
        """Connect to the database.

        Raises:
            Misconfigured: the URL or the credentials are wrong.
            Unavailable: the server cannot be reached.
        """
        first = await pools.connect(url, pooled=True)
        try:
            pooled = await pools.is_pooled(first)
        finally:
            first.terminate()
        statements = _statements(clock or CLOCK)
        pool = await pools.create_pool(url, pooled=pooled, size=pool_size)
        return cls(url, pool, statements, pooled=pooled, pool_size=pool_size)

    async def run(self, work: Work[T]) -> T:
        return await self._transact(work, begin=pools.BEGIN_POOLED if self._pooled else pools.BEGIN)

    async def read(self, work: Work[T]) -> T:
        return await self._transact(work, begin=pools.BEGIN_READ)

    async def single(self, work: Work[T]) -> T:
        return await self._transact(work, begin=pools.BEGIN_POOLED if self._pooled else None)

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Session]:
        return self._sessions.open(held, key)

    @property
    def has_push(self) -> bool:
        return self._hub.probe is None

    def listen(self, queues: Sequence[str] | None) -> Subscription:
        if not self._pooled:  # a transaction pooler does not support LISTEN
            self._listener.start()
        return self._hub.listen(queues)

    def join(self, bus: Bus) -> None:
        # Without a pooler, NOTIFY announces ready jobs, and the bus only needs to announce other changes.
        self._hub.names_lanes = self._pooled
        bus.join(self._hub)

    async def installation(self) -> str:
        query = "SELECT applied_at::text FROM holdfast_schema ORDER BY version LIMIT 1"
        return str(await self._on_connection(lambda connection: connection.fetchval(query)))

    async def migrate(self) -> list[str]:
        async def work(connection: asyncpg.Connection) -> list[str]:
            # A migration may rewrite large tables, and other nodes wait for it here.
            await connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
            await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK, timeout=_MIGRATION_TIMEOUT_S)
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS holdfast_schema (version integer PRIMARY KEY, name text NOT NULL, "
                "checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
            )
            todo = migrate.pending(migrate.migrations("postgres"), await _applied(connection))
            for migration in todo:
                await connection.execute(migration.sql, timeout=_MIGRATION_TIMEOUT_S)
                await connection.execute(
                    "INSERT INTO holdfast_schema (version, name, checksum) VALUES ($1, $2, $3)",
                    migration.version, migration.name, migration.checksum,
                )  # fmt: skip
            return [f"{migration.version:04d}_{migration.name}" for migration in todo]

        applied: list[str] = await self._on_connection(work)
        await self._maintenance.create_partitions()
        return applied

    async def check_schema(self) -> None:
        migrate.require_current(migrate.migrations("postgres"), await self._on_connection(_applied))

    async def maintain_tables(self, rule: Retention) -> None:
        try:
            await self._maintenance.maintain_tables(rule)
        except (asyncpg.PostgresError, *LOST) as error:
            raise translate(error) or error from error

    async def info(self) -> ServerInfo:
        version = await self._on_connection(lambda connection: connection.fetchval("SHOW server_version"))
        return ServerInfo("postgresql", str(version).split(" ", 1)[0], self._pooled, listens=not self._pooled)

    def pool(self) -> PoolUse:
        return self._connections.usage()

    async def aclose(self) -> None:
        await self._notifier.aclose()
        await self._listener.aclose()
        await self._hub.aclose()
        await self._sessions.aclose()
        await self._connections.aclose()

    async def _transact(self, work: Work[T], begin: str | None) -> T:
        conflicts = 0
        until = time.monotonic() + _RETRY_TIMEOUT_S
        while True:
            try:
                return await self._attempt(work, begin)
            except _StaleConnection:  # terminates: the pool loses one each time
                continue
            except TRANSIENT as error:
                conflicts += 1
                if conflicts == _MAX_ATTEMPTS or time.monotonic() > until:
                    times = "once" if conflicts == 1 else f"{conflicts} times"
                    raise Contention(
                        f"the transaction failed {times} because of conflicts ({error}), nothing was changed: try again"
                    ) from error
                await asyncio.sleep(random.uniform(0, 0.0025 * 2**conflicts))

    async def _attempt(self, work: Work[T], begin: str | None) -> T:
        began = time.monotonic()
        connection = await self._acquire()
        committing = begin is None
        try:
            tx = PostgresTx(connection, self._statements, autocommit=begin is None)
            if begin is not None:
                await connection.execute(begin)
            result = await work(tx)
            if begin is not None:
                committing = True
                await connection.execute("COMMIT")
        except TRANSIENT:
            await self._roll_back(connection, begin)
            raise
        except HoldfastError:
            await self._roll_back(connection, begin)
            raise
        except READ_ONLY as error:
            was_open = connection.opened_at < began
            await self._roll_back(connection, begin, broken=True)
            if was_open:
                raise _StaleConnection from error
            raise translate(error) or error from error
        except (asyncpg.PostgresError, *LOST) as error:
            lost = pools.is_gone(connection) or (
                isinstance(error, LOST) and not isinstance(error, asyncpg.PostgresError)
            )
            await self._roll_back(connection, begin, broken=lost)
            translated = translate(error) or Unavailable(str(error))
            if committing and lost:
                raise OutcomeUnknown(f"the connection broke while the database was committing: {translated}") from error
            raise translated from error
        except BaseException:  # cancelled or failed: discard its effects
            await self._roll_back(connection, begin, broken=True)
            raise
        await self._connections.release(connection)
        self._hub.committed(tx.ready_lanes, changed=tx.changed)
        if tx.ready_lanes:
            self._notifier.notify(tx.ready_lanes)
        return result

    async def _acquire(self) -> asyncpg.Connection:
        try:
            return await self._connections.acquire(_ACQUIRE_TIMEOUT_S)
        except TimeoutError as error:
            raise Unavailable(
                f"no database connection was free within {_ACQUIRE_TIMEOUT_S:.0f} s: "
                "the server is slow or down, or the pool is too small"
            ) from error
        except (asyncpg.PostgresError, *LOST) as error:
            raise pools.connect_error(error) from error

    async def _roll_back(self, connection: asyncpg.Connection, begin: str | None, *, broken: bool = False) -> None:
        """Roll back and release a connection after a failure; close it if its state is unknown."""
        try:
            if broken or pools.is_gone(connection):
                pools.terminate(connection)
            elif begin is not None:
                await connection.execute("ROLLBACK", timeout=2)
        except (asyncpg.PostgresError, *LOST):
            pools.terminate(connection)
        finally:
            await self._connections.restore(connection)

    async def _on_connection(self, work: Any) -> Any:
        """Run schema or admin work on a connection, inside a transaction."""
        connection = await self._acquire()
        try:
            async with connection.transaction():
                return await work(connection)
        except (asyncpg.PostgresError, *LOST) as error:
            if isinstance(error, READ_ONLY):
                pools.terminate(connection)
            raise translate(error) or Unavailable(str(error)) from error
        finally:
            await self._connections.restore(connection)

    async def _notify(self, payload: str) -> None:
        await self.single(lambda tx: tx.rows("notify", payload=payload))  # type: ignore[attr-defined]


async def _applied(connection: asyncpg.Connection) -> list[AppliedMigration]:
    if await connection.fetchval("SELECT to_regclass('holdfast_schema')") is None:
        return []
    rows = await connection.fetch("SELECT version, name, checksum FROM holdfast_schema ORDER BY version")
    return [AppliedMigration(*row) for row in rows]


@cache
def _statements(clock: str) -> Statements:
    """Load the statements once per process and clock."""
    return Statements("postgres", placeholder=lambda _, position: f"${position}", clock=clock)
