"""Test databases on a server: created under unique names, emptied quickly, dropped at the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import asyncmy
import asyncpg

from holdfast.compose import open_store
from tests.support.servers.given import mysql_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

MANY_ROWS = 5_000  # from here on, MySQL truncates a table faster than it deletes the rows
PERMANENT_TABLES = frozenset({"holdfast_test_clock"})
"""Tables of tests that are emptied but not dropped, because creating them takes longer than many tests."""
TIMEOUT_S = 10  # seconds to wait for locks that a test left


async def migrate(url: str) -> None:
    """Migrate a database to the newest schema."""
    store = await open_store(url)
    try:
        await store.migrate()
    finally:
        await store.aclose()


def at_database(url: str, name: str) -> str:
    """Return the URL of another database on the same server."""
    return urlsplit(url)._replace(path=f"/{name}").geturl()


class Database(ABC):
    """Test database with a direct connection; its URL may lead `through` a pooler."""

    def __init__(self, server_url: str, name: str, *, through: str | None = None) -> None:
        self.server_url = server_url
        self.name = name
        self.url = at_database(through or server_url, name)
        self._empty_tables: list[str] = []
        self._tables: frozenset[str] = frozenset()

    async def __aenter__(self) -> Self:
        await self._connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._disconnect()

    async def migrate(self) -> None:
        """Migrate the database, and remember which tables are empty afterwards."""
        await migrate(self.url)
        self._tables = frozenset(await self._list_tables())
        self._empty_tables = [table for table in sorted(self._tables) if not await self._has_rows(table)]

    async def empty(self) -> None:
        """Restore the state after the migration, except that permanent tables stay, without rows."""
        present = set(await self._list_tables())
        await self._drop_tables(present - self._tables - PERMANENT_TABLES)
        await self._delete_rows([*self._empty_tables, *(present & PERMANENT_TABLES)])

    @abstractmethod
    async def _connect(self) -> None: ...
    @abstractmethod
    async def _disconnect(self) -> None: ...
    @abstractmethod
    async def _list_tables(self) -> list[str]: ...
    @abstractmethod
    async def _has_rows(self, table: str) -> bool: ...
    @abstractmethod
    async def _drop_tables(self, tables: Iterable[str]) -> None: ...
    @abstractmethod
    async def _delete_rows(self, tables: Sequence[str]) -> None: ...


class PostgresDatabase(Database):
    """Test database on PostgreSQL."""

    _connection: asyncpg.Connection

    async def _connect(self) -> None:
        server = await asyncpg.connect(self.server_url)
        try:
            await server.execute(f'CREATE DATABASE "{self.name}"')
        finally:
            await server.close()
        settings = {"synchronous_commit": "off", "lock_timeout": f"{TIMEOUT_S}s"}
        direct = at_database(self.server_url, self.name)
        self._connection = await asyncpg.connect(direct, server_settings=settings)

    async def _disconnect(self) -> None:
        await self._connection.close()

    async def _list_tables(self) -> list[str]:
        rows = await self._connection.fetch(
            "SELECT oid::regclass::text AS name FROM pg_class "
            "WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
        )
        return [row["name"] for row in rows]

    async def _has_rows(self, table: str) -> bool:
        return bool(await self._connection.fetchval(f"SELECT EXISTS (SELECT FROM {table})"))

    async def _drop_tables(self, tables: Iterable[str]) -> None:
        for table in tables:
            await self._connection.execute(f"DROP TABLE IF EXISTS {table} CASCADE")

    async def _delete_rows(self, tables: Sequence[str]) -> None:
        size = await self._connection.fetchval(
            "SELECT sum(pg_relation_size(name::regclass)) FROM unnest($1::text[]) AS name", tables
        )
        # Deleting takes 1 ms and truncating 10 ms, but truncating leaves no dead rows that slow down later tests.
        if size > 1_000_000:
            await self._connection.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY")
        else:
            await self._connection.execute("; ".join(f"DELETE FROM {table}" for table in tables))
            if "holdfast_change_log" in tables:  # a stream cannot resume after thousands of numbers without rows
                await self._connection.execute("ALTER SEQUENCE holdfast_change_log_seq_seq RESTART")


class MysqlDatabase(Database):
    """Test database on MySQL or MariaDB."""

    _connection: asyncmy.Connection

    async def _connect(self) -> None:
        self._connection = await asyncmy.connect(**mysql_address(self.server_url), autocommit=True)
        await self._run(f"CREATE DATABASE `{self.name}`")
        await self._run(f"USE `{self.name}`")
        await self._run(
            f"SET foreign_key_checks = 0, lock_wait_timeout = {TIMEOUT_S}, innodb_lock_wait_timeout = {TIMEOUT_S}"
        )

    async def _disconnect(self) -> None:
        await self._connection.ensure_closed()

    async def _list_tables(self) -> list[str]:
        return [row[0] for row in await self._run("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")]

    async def _has_rows(self, table: str) -> bool:
        return bool(await self._run(f"SELECT 1 FROM `{table}` LIMIT 1"))

    async def _drop_tables(self, tables: Iterable[str]) -> None:
        for table in tables:
            await self._run(f"DROP TABLE IF EXISTS `{table}`")

    async def _delete_rows(self, tables: Sequence[str]) -> None:
        # As on PostgreSQL: deleting is faster for few rows, truncating for many.
        await self._run("BEGIN")
        deleted = {table: await self._count(f"DELETE FROM `{table}` LIMIT {MANY_ROWS}") for table in tables}
        await self._run("COMMIT")
        for table in [table for table, rows in deleted.items() if rows == MANY_ROWS]:
            await self._run(f"TRUNCATE `{table}`")

    async def _run(self, statement: str) -> list[tuple[Any, ...]]:
        async with self._connection.cursor() as cursor:
            await cursor.execute(statement)
            return list(await cursor.fetchall())

    async def _count(self, statement: str) -> int:
        async with self._connection.cursor() as cursor:
            return int(await cursor.execute(statement))


DATABASES: dict[str, type[Database]] = {"postgres": PostgresDatabase, "mysql": MysqlDatabase}


async def drop_all(dialect: str, server_url: str, prefix: str) -> None:
    """Drop every database whose name begins with the prefix."""
    match dialect:
        case "postgres":
            await _drop_all_postgres(server_url, prefix)
        case "mysql":
            await _drop_all_mysql(server_url, prefix)


async def _drop_all_postgres(server_url: str, prefix: str) -> None:
    server = await asyncpg.connect(server_url)
    try:
        for row in await server.fetch("SELECT datname FROM pg_database WHERE starts_with(datname, $1)", prefix):
            await server.execute(f'DROP DATABASE IF EXISTS "{row["datname"]}" WITH (FORCE)')
    finally:
        await server.close()


async def _drop_all_mysql(server_url: str, prefix: str) -> None:
    server = await asyncmy.connect(**mysql_address(server_url), autocommit=True)
    try:
        async with server.cursor() as cursor:
            await cursor.execute("SHOW DATABASES")
            for (name,) in list(await cursor.fetchall()):
                if name.startswith(prefix):
                    await cursor.execute(f"DROP DATABASE IF EXISTS `{name}`")
    finally:
        await server.ensure_closed()
