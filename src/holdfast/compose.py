"""Builds the parts from settings: the one module that names concrete adapters."""

from urllib.parse import urlsplit

from holdfast.errors import Misconfigured
from holdfast.store.port import Store

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
