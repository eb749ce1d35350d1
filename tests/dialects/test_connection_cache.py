"""PostgreSQL connection cache: no task waits for a cached connection or gets a dead one (F11)."""

import asyncio

import asyncpg
import pytest
import pytest_asyncio

from holdfast.model.time import days
from holdfast.store.port.store import Retention
from holdfast.store.postgres import connection_cache
from holdfast.store.postgres.store import PostgresStore
from tests.support.eventually import TIMEOUT_S, eventually

pytestmark = pytest.mark.databases("postgres")

RULE = Retention(history=days(7), dead=days(30))


@pytest_asyncio.fixture
async def narrow(database_url):
    """Return a store with one connection."""
    opened = await PostgresStore.open(database_url, pool_size=1)
    yield opened
    async with asyncio.timeout(TIMEOUT_S):
        await opened.aclose()


def whose(tx):
    """Return the backend of the transaction."""
    return tx._connection.fetchval("SELECT pg_backend_pid()")


async def backend(store):
    return await store.single(whose)


async def test_one_connection_serves_many_tasks(narrow):
    """Tasks use it in turn, by all entry points: a cached connection is not kept from waiting tasks."""
    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.gather(
            *(narrow.single(lambda tx: tx.now()) for _ in range(5)),
            *(narrow.run(lambda tx: tx.now()) for _ in range(5)),
            narrow.maintain_tables(RULE),
            narrow.check_schema(),
        )
    assert narrow.pool() == (0, 1, 1)


async def test_a_connection_is_reused(narrow):
    assert await backend(narrow) == await backend(narrow)


async def test_a_connection_that_the_server_closed_is_not_reused(narrow, database_url):
    first = await backend(narrow)
    other = await asyncpg.connect(database_url)
    await other.execute("SELECT pg_terminate_backend($1)", first)
    await other.close()

    async def noticed():
        return narrow.pool() == (0, 0, 1)

    await eventually(noticed)
    assert await backend(narrow) != first


async def test_an_idle_connection_is_closed(database_url, monkeypatch):
    monkeypatch.setattr(connection_cache, "MAX_IDLE_S", 0.05)
    store = await PostgresStore.open(database_url, pool_size=2)
    try:
        first = await backend(store)

        async def closed():
            return store.pool().busy == 0 and not store._connections._cached

        await eventually(closed)
        assert await backend(store) != first
    finally:
        await store.aclose()


async def test_a_connection_is_idle_after_a_failure(narrow):
    async def fail(tx):
        await tx.now()
        raise ZeroDivisionError

    async def linger(tx):
        await whose(tx)
        await asyncio.Event().wait()

    for way in (narrow.run, narrow.single):
        with pytest.raises(ZeroDivisionError):
            await way(fail)
        lingering = asyncio.create_task(way(linger))
        await eventually(lambda: asyncio.sleep(0, narrow.pool().busy == 1))
        lingering.cancel()
        await asyncio.gather(lingering, return_exceptions=True)
        assert await way(lambda tx: tx.now())
