"""Servers that the environment names: used as they are, never started nor stopped."""

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
    """The server that the environment names, if any; missing if it names one that does not answer."""
    variable = VARIABLES.get(name, "")
    url = os.environ.get(variable)
    if not url:
        return None
    try:
        version = asyncio.run(asyncio.wait_for(_ASK[name](url), timeout=15))
    except Exception as error:  # noqa: BLE001  whatever a driver raises, the run goes on and names it
        return Missing(f"the server of {variable} does not answer: {type(error).__name__}: {error}")
    return Server(url, version, source=f"from {variable}", private=False)


def mysql_address(url: str) -> dict[str, Any]:
    """The arguments with which the driver connects to the URL's server."""
    at = urlsplit(url)
    return {
        "host": at.hostname or "127.0.0.1",
        "port": at.port or 3306,
        "user": unquote(at.username or "root"),
        "password": unquote(at.password or ""),
    }


async def _ask_postgres(url: str) -> str:
    import asyncpg  # only a server named in the environment needs its driver here

    connection = await asyncpg.connect(url)
    try:
        return str(await connection.fetchval("SHOW server_version")).split()[0]
    finally:
        await connection.close()


async def _ask_mysql(url: str) -> str:
    import asyncmy

    connection = await asyncmy.connect(**mysql_address(url))
    try:
        async with connection.cursor() as cursor:
            await cursor.execute("SELECT VERSION()")
            return str((await cursor.fetchone())[0])
    finally:
        await connection.ensure_closed()


async def _ask_redis(url: str) -> str:
    from redis.asyncio import Redis

    async with Redis.from_url(url) as client:
        return str((await client.info("server"))["redis_version"])


_ASK = {"postgres": _ask_postgres, "mysql": _ask_mysql, "redis": _ask_redis}
