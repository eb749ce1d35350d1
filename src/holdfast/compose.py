"""Builds the parts from settings: the one module that names concrete adapters."""

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.config import Settings
from holdfast.engine.engine import Engine, EngineRules
from holdfast.errors import Misconfigured
from holdfast.model.job import RetryRule
from holdfast.store.port import Retention, Store
from holdfast.telemetry.emit import Emit, log_event

if TYPE_CHECKING:
    from holdfast.api.app import Api

_SETTING = "HOLDFAST_DATABASE_URL"


async def open_store(url: str, *, clock: str | None = None, pool_size: int = 10) -> Store:
    """The store behind a database URL, connected; its schema is neither checked nor changed.

    `clock` replaces the database's clock in every statement by another SQL expression, for tests.
    """
    scheme = urlsplit(url).scheme
    match scheme.split("+", 1)[0]:
        case "postgresql" | "postgres":
            from holdfast.store.postgres.store import PostgresStore

            return await PostgresStore.open(url, clock=clock, pool_size=pool_size)
        case "mysql" | "mariadb":
            from holdfast.store.mysql.store import MysqlStore

            return await MysqlStore.open(url, clock=clock, pool_size=pool_size)
        case "sqlite":
            from holdfast.store.sqlite.store import SqliteStore

            return await SqliteStore.open(url, clock=clock)
        case _:
            raise Misconfigured(
                f"{_SETTING}: {scheme or url!r} is not a database holdfast knows; "
                "use postgresql://…, mysql://… or sqlite:///path/to/file.db"
            )


def engine_rules(settings: Settings) -> EngineRules:
    """The defaults of an installation, from its settings."""
    return EngineRules(
        retry=RetryRule(settings.backoff_base, settings.backoff_max, settings.backoff_jitter),
        max_attempts=settings.max_attempts,
        key_retention=settings.keys_kept,
        retention=Retention(history=settings.history_kept, dead=settings.dead_kept),
    )


async def open_engine(settings: Settings, *, migrate: bool = False, emit: Emit = log_event) -> Engine:
    """An engine on the database of the settings, whose schema must be right; `migrate` makes it so first."""
    store = await open_store(settings.database_url, pool_size=settings.pool_size)
    try:
        if migrate:
            await store.migrate()
        return await Engine.open(store, engine_rules(settings), emit=emit)
    except BaseException:
        await store.aclose()
        raise


def build_api(settings: Settings, engine: Engine, *, admin_key: str | None = None, demo: bool = False) -> "Api":
    """The HTTP service on an engine. Without any way to prove who calls, it is not built."""
    key = settings.admin_key or admin_key
    if key is None:
        raise Misconfigured("HOLDFAST_ADMIN_KEY: set it to a long random text: nobody could call the API without a key")
    from holdfast import __version__
    from holdfast.api.app import Api
    from holdfast.api.auth import AdminKey
    from holdfast.api.routes import ALL
    from holdfast.api.service import Service, ServiceRules
    from holdfast.api.table import Routes

    routes = Routes(route for route in ALL if demo or not route.demo)
    return Api(Service(engine, AdminKey(key), routes, ServiceRules(version=__version__, demo=demo), asyncio.Event()))


def mysql_arguments(url: str) -> dict[str, Any]:
    """How the driver of MySQL is called for a URL, for a session beside the store."""
    from holdfast.store.mysql.url import read_url

    return read_url(url).arguments()
