"""Upkeep of the tables themselves: a partition for each coming day, old days dropped, the live table vacuumed.

Safe on every node at once; of many, one does it. Where the database user may not (no ownership), it is left to the
administrator: rows then go to the default partition and autovacuum does the rest.
"""

import time
from datetime import UTC, datetime, timedelta

import asyncpg

from holdfast.store.port.store import Retention
from holdfast.store.postgres.connection_cache import ConnectionCache

DAYS_AHEAD = 3
_DAY = 86_400_000_000
_VACUUM_EVERY = 3.0
_VACUUM_SELDOM = 60.0
"""Seconds between vacuums while they can remove nothing, since somebody holds an old snapshot."""
_VACUUM_DEAD = 5_000
"""Dead rows below which a vacuum is not worth its cost."""
_DAYS_EVERY = 600.0
_ACQUIRE_TIMEOUT = 30.0
_BRIEFLY = "SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = '30s'; "
"""Whoever needs the table waits behind one who waits to change it; and behind a pooler no session has limits."""


class TableMaintenance:
    """Does each kind of upkeep when it is due."""

    def __init__(self, connections: ConnectionCache) -> None:
        self._connections = connections
        self._next_days = 0.0
        self._next_vacuum = 0.0
        self._vacuum_pause = _VACUUM_EVERY

    async def maintain_tables(self, rule: Retention) -> None:
        """Whatever is due."""
        now = time.monotonic()
        if now >= self._next_vacuum:
            await self._vacuum()
            self._next_vacuum = time.monotonic() + self._vacuum_pause
        if now >= self._next_days:
            self._next_days = now + _DAYS_EVERY
            await self.create_partitions()
            await self._drop_days(rule)

    async def create_partitions(self) -> None:
        """Make sure that today and the next days have a partition."""
        async with self._connections.use(_ACQUIRE_TIMEOUT) as connection:
            today = await connection.fetchval("SELECT floor(date_part('epoch', clock_timestamp()) / 86400)::bigint")
            for day in range(today - 1, today + DAYS_AHEAD + 1):
                await _make_day(connection, day)

    async def _drop_days(self, rule: Retention) -> None:
        async with self._connections.use(_ACQUIRE_TIMEOUT) as connection:
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
                    await _try(connection, f"{_BRIEFLY}DROP TABLE {name}")

    async def _vacuum(self) -> None:
        async with self._connections.use(_ACQUIRE_TIMEOUT) as connection:
            dead = await _dead_rows(connection)
            if dead < _VACUUM_DEAD:
                self._vacuum_pause = _VACUUM_EVERY
                return
            mine = await connection.fetchval(
                "INSERT INTO holdfast_upkeep (name, done_at) "
                "VALUES ('vacuum', (date_part('epoch', clock_timestamp()) * 1000000)::bigint) "
                "ON CONFLICT (name) DO UPDATE SET done_at = excluded.done_at "
                "WHERE holdfast_upkeep.done_at < excluded.done_at - $1::bigint RETURNING 1",
                int(_VACUUM_EVERY * 1_000_000),
            )
            if mine:
                await _try(connection, "VACUUM (TRUNCATE off, INDEX_CLEANUP on) holdfast_live")
                useless = await _dead_rows(connection) > dead // 2
                self._vacuum_pause = min(_VACUUM_SELDOM, 2 * self._vacuum_pause) if useless else _VACUUM_EVERY


async def _dead_rows(connection: asyncpg.Connection) -> int:
    rows: int | None = await connection.fetchval(
        "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'holdfast_live'::regclass"
    )
    return rows or 0


async def _make_day(connection: asyncpg.Connection, day: int) -> None:
    name = f"holdfast_history_{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day):%Y%m%d}"
    if await connection.fetchval("SELECT to_regclass($1)", name) is None:
        await _try(
            connection,
            f"{_BRIEFLY}CREATE TABLE IF NOT EXISTS {name} PARTITION OF holdfast_history "
            f"FOR VALUES FROM ({day * _DAY}) TO ({(day + 1) * _DAY})",
        )


def _day_of(name: str) -> int:
    made = datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC)
    return (made - datetime(1970, 1, 1, tzinfo=UTC)).days


async def _try(connection: asyncpg.Connection, statement: str) -> None:
    """Run upkeep that may fail: for want of rights or a lock, or since the default partition has such rows already."""
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
