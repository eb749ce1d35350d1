"""Plain database connections for schema checks and benchmarks.

Statements are constants without parameters, so that each driver is used in its simplest way.
"""

import asyncio
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import unquote, urlsplit

from holdfast.store.drivers import needs_driver

Rows = list[tuple[Any, ...]]


class Console(Protocol):
    """Database connection in autocommit mode."""

    dialect: str
    """Dialect of its statements and migrations: postgres, mysql or sqlite."""

    async def rows(self, statement: str) -> Rows:
        """Run one statement and return its rows."""

    async def aclose(self) -> None:
        """Close the connection."""


async def open_console(url: str) -> Console:
    """Connect to the database of a URL that a store accepts."""
    match dialect_of(url):
        case "postgres":
            return await PostgresConsole.open(url)
        case "mysql":
            return await MysqlConsole.open(url)
        case _:
            return await SqliteConsole.open(url)


async def has_table(console: Console, name: str) -> bool:
    """Return True if the table exists."""
    return bool(await console.rows(_HAS_TABLE[console.dialect].format(name)))


_HAS_TABLE = {
    "postgres": "SELECT 1 WHERE to_regclass('{}') IS NOT NULL",
    "mysql": "SHOW TABLES LIKE '{}'",
    "sqlite": "SELECT 1 FROM sqlite_schema WHERE name = '{}'",
}


def dialect_of(url: str) -> str:
    """Return the dialect of a database URL."""
    match urlsplit(url).scheme.split("+", 1)[0]:
        case "postgresql" | "postgres":
            return "postgres"
        case "mysql" | "mariadb":
            return "mysql"
        case _:
            return "sqlite"


def is_new_file(url: str) -> bool:
    """Return True if an SQLite URL names a file that does not exist and can be created."""
    path, name = Path(_file_of(url)), url.partition("://")[2]
    well_formed = name.startswith("/") and "?" not in name and path.name not in ("", ":memory:")
    return well_formed and path.parent.is_dir() and not path.exists()


def _file_of(url: str) -> str:
    return unquote(url.partition("://")[2])[1:]


class PostgresConsole(Console):
    """Connection to PostgreSQL."""

    dialect = "postgres"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect."""
        with needs_driver("PostgreSQL", "postgres"):
            import asyncpg  # noqa: PLC0415 - drivers are optional

        scheme, rest = url.split(":", 1)
        # A transaction pooler does not keep prepared statements.
        return cls(await asyncpg.connect(f"{scheme.split('+', 1)[0]}:{rest}", statement_cache_size=0))

    async def rows(self, statement: str) -> Rows:
        return [tuple(row) for row in await self._connection.fetch(statement)]

    async def aclose(self) -> None:
        await self._connection.close(timeout=5)


class MysqlConsole(Console):
    """Connection to MySQL or MariaDB."""

    dialect = "mysql"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect."""
        with needs_driver("MySQL", "mysql"):
            import asyncmy  # noqa: PLC0415 - drivers are optional

        from holdfast.store.mysql.url import read_url  # noqa: PLC0415 - imports the driver's package

        return cls(await asyncmy.connect(**read_url(url).arguments(), charset="utf8mb4", autocommit=True))

    async def rows(self, statement: str) -> Rows:
        async with self._connection.cursor() as cursor:
            await cursor.execute(statement)
            return [tuple(row) for row in await cursor.fetchall()]

    async def aclose(self) -> None:
        await self._connection.ensure_closed()


class SqliteConsole(Console):
    """Connection to an existing SQLite file."""

    dialect = "sqlite"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> Self:
        """Connect; statements run on a thread and wait for other writers."""
        import apsw  # noqa: PLC0415 - drivers are optional

        connection = await asyncio.to_thread(apsw.Connection, _file_of(url), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(30_000)
        connection.pragma("synchronous", "FULL")
        return cls(connection)

    async def rows(self, statement: str) -> Rows:
        found: list[Any] = await asyncio.to_thread(lambda: self._connection.execute(statement).fetchall())
        return [tuple(row) for row in found]

    async def aclose(self) -> None:
        self._connection.close()
