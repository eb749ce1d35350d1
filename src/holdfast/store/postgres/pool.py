"""Connections to PostgreSQL: opened with what the hot statements need, given out one transaction at a time."""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import asyncpg

from holdfast.errors import Misconfigured, Unavailable
from holdfast.store.postgres.errors import SETTING, translate

STATEMENT_TIMEOUT = 30.0
"""Seconds any internal statement may take, by the server's count; the client waits a little longer."""

LONGEST_IDLE = 300.0
"""Seconds after which a connection that nobody uses is closed."""

PLANNER: Mapping[str, str] = {
    # The hot statements must ride their index from the first row on, before statistics exist and whatever they say.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    # An ANALYZE at a moment without ready jobs would have the lanes collected and sorted instead of walked.
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "statement_timeout": f"{STATEMENT_TIMEOUT:.0f}s",
    "lock_timeout": "10s",
    # Whoever falls silent in a transaction may hold the lock on which the recovery of its own jobs waits.
    "idle_in_transaction_session_timeout": "5s",
}

READER: Mapping[str, str] = {
    # Listings have many optional filters: each is planned for the values it has, and may join and scan as it likes.
    # But an index is read in its order and no further than to the limit, where a bitmap would take all of it first.
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "on",
    "enable_hashjoin": "on",
    "enable_mergejoin": "on",
}


_NO_CONNECTION = (asyncpg.PostgresError, OSError, TimeoutError, asyncpg.InterfaceError, ValueError, ssl.SSLError)


def _begin(kind: str, settings: Mapping[str, str]) -> str:
    """Begin a transaction with settings of its own, in one message."""
    return "; ".join([kind, *(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())])


BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_POOLED = _begin(BEGIN, PLANNER)
"""Behind a transaction pooler nothing of a session lasts, so each transaction brings its settings."""
BEGIN_READ = _begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", {**PLANNER, **READER})


class PlainConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver is not typed
    """Leaves no state behind, so nothing needs to be reset when it goes back to the pool."""

    def get_reset_query(self) -> str:
        """Nothing: the stock query would cost a round trip for every use."""
        return ""


async def connect(url: str, *, pooled: bool, timeout: float = 10.0) -> asyncpg.Connection:
    """One connection; our errors when there is none."""
    try:
        return await asyncpg.connect(_dsn(url), timeout=timeout, **_options(pooled=pooled))
    except _NO_CONNECTION as error:
        raise connect_error(error) from error


async def is_pooled(connection: asyncpg.Connection) -> bool:
    """Whether a transaction pooler stands between: then the server we were told of is not the one that answers."""
    try:
        return bool(await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid())
    except _NO_CONNECTION as error:  # a pooler greets us also when its server is away
        raise connect_error(error) from error


async def create_pool(url: str, *, pooled: bool, size: int) -> asyncpg.Pool:
    """A pool of at most `size` connections, opened as they are needed."""
    return await asyncpg.create_pool(
        _dsn(url),
        min_size=0,
        max_size=size,
        max_inactive_connection_lifetime=LONGEST_IDLE,
        timeout=10,
        connection_class=PlainConnection,
        **_options(pooled=pooled),
    )


def connect_error(error: BaseException) -> Exception:
    """Why there is no connection."""
    if isinstance(error, ValueError):
        return Misconfigured(f"{SETTING}: {error}")
    return translate(error) or Unavailable(str(error))


def check_url(url: str) -> None:
    """Refuse what would otherwise be silently ignored or misunderstood."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise Misconfigured(f"{SETTING}: {error}; write postgresql://user:password@host:5432/database") from error
    known = {"sslmode", "host", "port", "user", "password", "dbname", "database", "application_name", "passfile"}
    if unknown := {name for name, _ in parse_qsl(parts.query)} - known:
        raise Misconfigured(f"{SETTING}: holdfast does not know the parameter {min(unknown)!r} in the URL: remove it")


def _dsn(url: str) -> str:
    scheme, rest = url.split(":", 1)
    return f"{scheme.split('+', 1)[0]}:{rest}"


def _options(*, pooled: bool) -> dict[str, Any]:
    if pooled:
        # Neither startup parameters nor named statements get through a pooler in transaction mode.
        return {"statement_cache_size": 0, "command_timeout": STATEMENT_TIMEOUT + 5}
    settings = {"application_name": "holdfast", **PLANNER}
    return {"server_settings": settings, "command_timeout": STATEMENT_TIMEOUT + 5}


def is_gone(connection: asyncpg.Connection) -> bool:
    """Whether it is closed. The driver's pool takes back by itself what broke, and then refuses to answer."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


def cut(connection: asyncpg.Connection) -> None:
    """Close it at once if it is still open."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


async def close_quietly(pool: asyncpg.Pool, within: float = 5.0) -> None:
    """Close a pool; connections that do not end in time are cut."""
    try:
        await asyncio.wait_for(pool.close(), within)
    except (TimeoutError, OSError, asyncpg.InterfaceError):
        pool.terminate()
