"""Servers that the environment names; they are never started or stopped."""

from __future__ import annotations

import asyncio
import os
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.support.servers import Missing, Server

VARIABLES = {
    "postgres": "HOLDFAST_TEST_POSTGRES_URL",
    "mysql": "HOLDFAST_TEST_MYSQL_URL",
    "redis": "HOLDFAST_TEST_REDIS_URL",
}


def given(name: str) -> Server | Missing | None:
    """Return the server that the environment names, if any; `Missing` if it does not respond."""
    variable = VARIABLES.get(name, "")
    url = os.environ.get(variable)
    if not url:
        return None
    try:
        version = asyncio.run(asyncio.wait_for(_VERSION_QUERIES[name](url), timeout=15))
    except Exception as error:  # noqa: BLE001  any error of a driver is reported
        return Missing(f"the server of {variable} does not respond: {type(error).__name__}: {error}")
    return Server(url, version, source=f"from {variable}", private=False)


def mysql_address(url: str) -> dict[str, Any]:
    """Return the connection arguments of the MySQL driver for a URL."""
    at = urlsplit(url)
    return {
        "host": at.hostname or "127.0.0.1",
        "port": at.port or 3306,
        "user": unquote(at.username or "root"),
        "password": unquote(at.password or ""),
    }


async def _version_of_postgres(url: str) -> str:
    import asyncpg  # only a server named in the environment needs its driver here

    connection = await asyncpg.connect(url)
    try:
        return str(await connection.fetchval("SHOW server_version")).split()[0]
    finally:
        await connection.close()


async def _version_of_mysql(url: str) -> str:
    import asyncmy

    connection = await asyncmy.connect(**mysql_address(url))
    try:
        async with connection.cursor() as cursor:
            await cursor.execute("SELECT VERSION()")
            return str((await cursor.fetchone())[0])
    finally:
        await connection.ensure_closed()


async def _version_of_redis(url: str) -> str:
    from redis.asyncio import Redis

    async with Redis.from_url(url) as client:
        return str((await client.info("server"))["redis_version"])


_VERSION_QUERIES = {"postgres": _version_of_postgres, "mysql": _version_of_mysql, "redis": _version_of_redis}
