"""Table maintenance: create daily partitions, drop old ones, and vacuum the live table.

Safe on all nodes concurrently; one of them does the work. A database user who does not own the tables cannot do it:
rows then go to the default partition, and autovacuum does the rest.
"""

import time
from datetime import UTC, datetime, timedelta

import asyncpg

from holdfast.store.port.store import Retention
from holdfast.store.postgres.connection_cache import ConnectionCache

DAYS_AHEAD = 3
_DAY = 86_400_000_000
_VACUUM_INTERVAL_S = 3.0
_MAX_VACUUM_INTERVAL_S = 60.0
"""Interval between vacuums while an old snapshot keeps them from removing rows."""
_MIN_DEAD_ROWS = 5_000
"""Number of dead rows below which a vacuum is not worth its cost."""
_PARTITION_INTERVAL_S = 600.0
_ACQUIRE_TIMEOUT_S = 30.0
_SHORT_TIMEOUTS = "SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '30s'; "
"""Timeouts of DDL, because other statements on the table queue behind its lock request."""


class TableMaintenance:
    """Runs each kind of maintenance when it is due."""

    def __init__(self, connections: ConnectionCache) -> None:
        self._connections = connections
        self._next_partitions = 0.0
        self._next_vacuum = 0.0
        self._vacuum_interval = _VACUUM_INTERVAL_S

    async def maintain_tables(self, rule: Retention) -> None:
        """Run the maintenance that is due."""
        now = time.monotonic()
        if now >= self._next_vacuum:
            await self._vacuum()
            self._next_vacuum = time.monotonic() + self._vacuum_interval
        if now >= self._next_partitions:
            self._next_partitions = now + _PARTITION_INTERVAL_S
            await self.create_partitions()
            await self._drop_partitions(rule)

    async def create_partitions(self) -> None:
        """Create the partitions of today and the next days."""
        async with self._connections.use(_ACQUIRE_TIMEOUT_S) as connection:
            today = await connection.fetchval("SELECT floor(date_part('epoch', clock_timestamp()) / 86400)::bigint")
            for day in range(today - 1, today + DAYS_AHEAD + 1):
                await _create_partition(connection, day)

    async def _drop_partitions(self, rule: Retention) -> None:
        async with self._connections.use(_ACQUIRE_TIMEOUT_S) as connection:
            oldest = await connection.fetchval(
                "SELECT floor((date_part('epoch', clock_timestamp()) * 1000000 - $1::bigint) / 86400000000)::bigint",
                rule.history,
            )
            rows = await connection.fetch(
                "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
                "WHERE i.inhparent = 'holdfast_history'::regclass AND c.relname ~ '^holdfast_history_[0-9]{8}$'"
            )
            for (name,) in rows:
                if _day_of(name) < oldest:  # the day's last moment is past the retention
                    await _try(connection, f"{_SHORT_TIMEOUTS}DROP TABLE {name}")

    async def _vacuum(self) -> None:
        async with self._connections.use(_ACQUIRE_TIMEOUT_S) as connection:
            dead = await _dead_rows(connection)
            if dead < _MIN_DEAD_ROWS:
                self._vacuum_interval = _VACUUM_INTERVAL_S
                return
            is_due = await connection.fetchval(
                "INSERT INTO holdfast_maintenance (name, done_at) "
                "VALUES ('vacuum', (date_part('epoch', clock_timestamp()) * 1000000)::bigint) "
                "ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at "
                "WHERE holdfast_maintenance.done_at < excluded.done_at - $1::bigint RETURNING 1",
                int(_VACUUM_INTERVAL_S * 1_000_000),
            )
            if is_due:
                await _try(connection, "VACUUM (TRUNCATE off, INDEX_CLEANUP on) holdfast_live")
                blocked = await _dead_rows(connection) > dead // 2
                self._vacuum_interval = (
                    min(_MAX_VACUUM_INTERVAL_S, 2 * self._vacuum_interval) if blocked else _VACUUM_INTERVAL_S
                )


async def _dead_rows(connection: asyncpg.Connection) -> int:
    rows: int | None = await connection.fetchval(
        "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'holdfast_live'::regclass"
    )
    return rows or 0


async def _create_partition(connection: asyncpg.Connection, day: int) -> None:
    name = f"holdfast_history_{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day):%Y%m%d}"
    if await connection.fetchval("SELECT to_regclass($1)", name) is None:
        await _try(
            connection,
            f"{_SHORT_TIMEOUTS}CREATE TABLE IF NOT EXISTS {name} PARTITION OF holdfast_history "
            f"FOR VALUES FROM ({day * _DAY}) TO ({(day + 1) * _DAY})",
        )


def _day_of(name: str) -> int:
    day = datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC)
    return (day - datetime(1970, 1, 1, tzinfo=UTC)).days


async def _try(connection: asyncpg.Connection, statement: str) -> None:
    """Run a statement; ignore missing privileges, lock timeouts and concurrent changes."""
    try:
        await connection.execute(statement)
    except (
        asyncpg.InsufficientPrivilegeError,
        asyncpg.LockNotAvailableError,
        asyncpg.QueryCanceledError,
        asyncpg.DeadlockDetectedError,
        asyncpg.CheckViolationError,
        asyncpg.DuplicateTableError,
        asyncpg.UniqueViolationError,
        asyncpg.UndefinedTableError,
    ):
        return
