"""Connections to PostgreSQL with the planner settings that the hot statements need."""

import asyncio
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import asyncpg
from asyncpg.exceptions import TargetServerAttributeNotMatched

from holdfast.errors import Misconfigured, Unavailable
from holdfast.store.postgres.errors import SETTING, translate
from holdfast.store.postgres.url import PostgresAddress, read_url

STATEMENT_TIMEOUT_S = 30.0
"""Timeout of internal statements on the server; the client waits a little longer."""

MAX_IDLE_S = 300.0
"""Unused connections are closed after this time."""

PLANNER: Mapping[str, str] = {
    # Hot statements must use their index from the first row on, before statistics exist and whatever these say.
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    # After an ANALYZE while no job is ready, the planner would collect and sort lanes instead of walking the index.
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "default_transaction_isolation": "read committed",
    "statement_timeout": f"{STATEMENT_TIMEOUT_S:.0f}s",
    # Bounds how long a submission waits for a locked table; longer than the next timeout, which frees most locks.
    "lock_timeout": "6s",
    # A client that goes silent in a transaction may hold the lock that the recovery of its own jobs waits for.
    "idle_in_transaction_session_timeout": "5s",
}

READER: Mapping[str, str] = {
    # Listings have many optional filters, so that each is planned for its values and may join and scan freely. Bitmap
    # scans stay off: an index scan stops at the limit, whereas a bitmap reads all matches first.
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "on",
    "enable_hashjoin": "on",
    "enable_mergejoin": "on",
}


_NO_CONNECTION = (asyncpg.PostgresError, OSError, TimeoutError, asyncpg.InterfaceError, ValueError, ssl.SSLError)


def _begin(kind: str, settings: Mapping[str, str]) -> str:
    """Return statements that begin a transaction with its own settings, in one message."""
    return "; ".join([kind, *(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())])


BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
BEGIN_POOLED = _begin(BEGIN, PLANNER)
"""A transaction pooler keeps no session state, so each transaction sets its own settings."""
BEGIN_READ = _begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", {**PLANNER, **READER})


class PlainConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver is not typed
    """Connection without session state, so that nothing is reset when it returns to the pool."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.opened_at = time.monotonic()

    def get_reset_query(self) -> str:
        """Return an empty query; the default one would cost a round trip for every use."""
        return ""


async def connect(url: str, *, pooled: bool) -> asyncpg.Connection:
    """Connect; raise our errors."""
    address = read_url(url)
    try:
        return await _connect_first(address, **_options(address, pooled=pooled))
    except _NO_CONNECTION as error:
        raise connect_error(error) from error


async def _connect_first(address: PostgresAddress, **options: Any) -> asyncpg.Connection:
    """Connect to the first host that is reachable and as `target_session_attrs` asks.

    The driver would try several hosts too, but with one timeout for all: a host that does not answer would use it up.
    """
    errors: list[str] = []
    for dsn, host in zip(address.dsns, address.hosts, strict=True):
        try:
            return await asyncpg.connect(dsn, timeout=address.connect_timeout, **options)
        except TargetServerAttributeNotMatched:
            errors.append(f"{host or 'localhost'}: a standby, or read-only")
        except (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.PostgresConnectionError) as error:
            if len(address.dsns) == 1:
                raise
            errors.append(f"{host or 'localhost'}: {error or 'it did not answer in time'}")
    raise Unavailable(f"no host of the database URL can be used ({'; '.join(errors)})")


async def is_pooled(connection: asyncpg.Connection) -> bool:
    """Return True behind a transaction pooler: the backend pid differs from the announced one."""
    try:
        return bool(await connection.fetchval("SELECT pg_backend_pid()") != connection.get_server_pid())
    except _NO_CONNECTION as error:  # a pooler accepts connections even if its server is down
        raise connect_error(error) from error


async def create_pool(url: str, *, pooled: bool, size: int) -> asyncpg.Pool:
    """Create a pool of at most `size` connections, opened on demand."""
    address = read_url(url)

    async def open_connection(*_dsn: object, **options: Any) -> asyncpg.Connection:
        return await _connect_first(address, **options)

    return await asyncpg.create_pool(
        connect=open_connection,
        min_size=0,
        max_size=size,
        max_inactive_connection_lifetime=MAX_IDLE_S,
        connection_class=PlainConnection,
        **_options(address, pooled=pooled),
    )


def connect_error(error: BaseException) -> Exception:
    """Return our error for a failed connection attempt."""
    if isinstance(error, ValueError):
        return Misconfigured(f"{SETTING}: {error}")
    return translate(error) or Unavailable(str(error))


def _options(address: PostgresAddress, *, pooled: bool) -> dict[str, Any]:
    if pooled:
        # A pooler in transaction mode supports neither startup parameters nor prepared statements.
        return {"statement_cache_size": 0, "command_timeout": STATEMENT_TIMEOUT_S + 5}
    settings = dict(PLANNER) if address.names_application else {"application_name": "holdfast", **PLANNER}
    return {"server_settings": settings, "command_timeout": STATEMENT_TIMEOUT_S + 5}


def is_gone(connection: asyncpg.Connection) -> bool:
    """Return True if the connection is closed or was taken back by the driver's pool."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


def terminate(connection: asyncpg.Connection) -> None:
    """Close a connection immediately if it is still open."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


async def close_quietly(pool: asyncpg.Pool, within: float = 5.0) -> None:
    """Close a pool; terminate connections that do not close in time."""
    try:
        await asyncio.wait_for(pool.close(), within)
    except (TimeoutError, OSError, asyncpg.InterfaceError):
        pool.terminate()
