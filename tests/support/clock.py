"""SQL console that bypasses the store, and a database clock that tests control."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import urlsplit

import apsw
import asyncmy
import asyncpg
import pytest_asyncio

from holdfast.compose import open_store
from holdfast.model.time import Duration, Instant, seconds
from tests.support.servers.given import mysql_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

    from holdfast.store.port.store import Store

CLOCK = "(SELECT at FROM holdfast_test_clock)"
START = Instant(1_000_000_000_000_000)
"""Time without its own partition, so that retention deletes rows on PostgreSQL too."""


def dialect_of(url: str) -> str:
    """Return the dialect of a URL."""
    scheme = urlsplit(url).scheme
    return {"postgresql": "postgres", "mariadb": "mysql"}.get(scheme, scheme)


class _Connection(Protocol):
    async def run(self, statement: str) -> list[tuple[Any, ...]]: ...
    async def close(self) -> None: ...


class Console:
    """Connection that runs SQL, each statement in its own transaction."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.dialect = dialect_of(url)
        self._busy = asyncio.Lock()

    async def __aenter__(self) -> Self:
        self._connection = await _CONNECT[self.dialect](self.url)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._connection.close()

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement in portable SQL and return its rows."""
        async with self._busy:
            return await self._connection.run(statement)

    async def value(self, statement: str) -> Any:
        """Return the first value of the first row."""
        return (await self.run(statement))[0][0]


class ManualClock:
    """Clock in a table, which the store reads instead of the database's clock."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._now = START

    async def start(self) -> None:
        """Create the table of the clock unless it exists, and set the time."""
        await self._console.run("CREATE TABLE IF NOT EXISTS holdfast_test_clock (at BIGINT NOT NULL)")
        await self._console.run(f"INSERT INTO holdfast_test_clock (at) VALUES ({self._now})")

    @property
    def now(self) -> Instant:
        """Current time of the clock."""
        return self._now

    async def advance(self, span: Duration) -> None:
        """Move the clock; a negative span turns it back."""
        await self.set(Instant(self._now + span))

    async def set(self, at: Instant) -> None:
        """Set the clock."""
        self._now = at
        await self._console.run(f"UPDATE holdfast_test_clock SET at = {at}")

    async def expire(self, lease: Duration = seconds(15)) -> None:
        """Advance the clock until every current lease has expired."""
        await self.advance(lease)


@pytest_asyncio.fixture
async def console(database_url: str) -> AsyncIterator[Console]:
    async with Console(database_url) as opened:
        yield opened


@pytest_asyncio.fixture
async def clock(console: Console) -> ManualClock:
    made = ManualClock(console)
    await made.start()
    return made


@pytest_asyncio.fixture
async def manual_store(database_url: str, clock: ManualClock) -> AsyncIterator[Store]:
    """Store whose clock the test controls."""
    opened = await open_store(database_url, clock=CLOCK)
    yield opened
    await opened.aclose()


class _Postgres:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, url: str) -> Self:
        return cls(await asyncpg.connect(url, statement_cache_size=0))

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._connection.fetch(statement)]

    async def close(self) -> None:
        await self._connection.close()


class _Mysql:
    def __init__(self, connection: asyncmy.Connection) -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, url: str) -> Self:
        database = urlsplit(url).path.lstrip("/")
        return cls(await asyncmy.connect(**mysql_address(url), db=database, autocommit=True))

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        async with self._connection.cursor() as cursor:
            await cursor.execute(statement)
            return list(await cursor.fetchall())

    async def close(self) -> None:
        await self._connection.ensure_closed()


class _Sqlite:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, url: str) -> Self:
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(10_000)
        return cls(connection)

    async def run(self, statement: str) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(statement))

    async def close(self) -> None:
        self._connection.close()


async def _postgres(url: str) -> _Connection:
    return await _Postgres.connect(url)


async def _mysql(url: str) -> _Connection:
    return await _Mysql.connect(url)


async def _sqlite(url: str) -> _Connection:
    return await _Sqlite.connect(url)


_CONNECT = {"postgres": _postgres, "mysql": _mysql, "sqlite": _sqlite}
