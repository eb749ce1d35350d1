"""What commands talk to: a service by its URL and key, or a database directly, with the same answers.

A database is reached through the very routes of the service, answered in this process: there is one meaning of every
question, whichever way it is asked.
"""

import functools
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from holdfast.cli.exit_codes import starting
from holdfast.cli.options import current_settings, remember
from holdfast.cli.state_dir import ADMIN_KEY, FOLDER, URL
from holdfast.config import Settings
from holdfast.errors import Misconfigured, Unavailable
from holdfast.sdk.async_client import AsyncClient

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

HOW = (
    "start 'holdfast up', or name a service (--api and --key, or HOLDFAST_API_URL and HOLDFAST_API_KEY) "
    "or a database (--url, or HOLDFAST_DATABASE_URL)"
)
PATIENCE = 3.0
"""Seconds that a command tries to reach whatever is away: somebody waits for it."""


class Way(NamedTuple):
    """Whom to talk to: a service if there is a key, otherwise a database."""

    url: str
    key: str | None
    source: str
    """What named it, for messages."""

    @property
    def is_service(self) -> bool:
        """Whether it is reached over HTTP."""
        return self.key is not None


def way_options(command: F) -> F:
    """Give a command `--api`, `--key`, `--url` and `--config`; `connected` and `asked` find them in the context."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in ("api_url", "api_key", "database_url")}
        remember(given, kwargs.pop("config"))
        return command(*args, **kwargs)

    decorated: Any = run
    for flags, name, text in (
        (("--config",), "config", "settings, instead of ./holdfast.toml"),
        (("--url", "--database-url"), "database_url", "a database to talk to directly [HOLDFAST_DATABASE_URL]"),
        (("--key", "--api-key"), "api_key", "the key for that service [HOLDFAST_API_KEY]"),
        (("--api", "--api-url"), "api_url", "a service to talk to [HOLDFAST_API_URL]"),
    ):
        kind = {"type": click.Path(path_type=Path), "metavar": "FILE"} if name == "config" else {"metavar": "VALUE"}
        decorated = click.option(*flags, name, help=text, **kind)(decorated)
    made: F = decorated
    return made


def chosen(settings: Settings) -> Way:
    """Whom the settings name: what a flag says first, then a database, a service, the `up` of this folder, its file."""
    sources = settings.sources
    api, database = sources.get("api_url", ""), sources.get("database_url", "")
    if api.startswith("--") and database.startswith("--"):
        raise click.UsageError("--api and --url are two ways to the jobs: give one of them")
    if settings.api_url is not None and (api.startswith("--") or not database):
        return Way(settings.api_url, _key(settings), api)
    if database:
        return Way(settings.database_url, None, database)
    return Way(settings.database_url, None, "the default")


def neighbour(folder: Path | None = None) -> Way | None:
    """The service that `holdfast up` started in this folder, as far as it left word."""
    home = folder or Path(FOLDER)
    try:
        url = (home / URL).read_text(encoding="ascii").strip()
        key = (home / ADMIN_KEY).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return Way(url, key, str(home / URL)) if url and key else None


@asynccontextmanager
async def connected(settings: Settings) -> AsyncIterator[AsyncClient]:
    """A client of whatever the settings name. Raises `Misconfigured` or `Unavailable`, with what to do."""
    way = chosen(settings)
    if way.source == "the default":
        async with _at_home(settings) as client:
            yield client
    elif way.is_service:
        async with AsyncClient(way.url, way.key, retry_timeout=PATIENCE) as client:
            yield client
    else:
        async with _direct(settings) as client:
            yield client


def asked(ask: Callable[[AsyncClient], Coroutine[Any, Any, T]]) -> T:
    """Run this against whatever the flags and settings of this command name."""
    from holdfast.cli.event_loop import run
    from holdfast.telemetry import logs

    settings = current_settings()
    logs.set_up(settings.log_format)

    async def main() -> T:
        async with connected(settings) as client:
            return await ask(client)

    return run(main())


@asynccontextmanager
async def _at_home(settings: Settings) -> AsyncIterator[AsyncClient]:
    """The `up` of this folder if it runs; otherwise the file it would use, if that is there."""
    up = neighbour()
    if up is not None:
        key = settings.api_key or settings.admin_key or up.key
        async with AsyncClient(up.url, key, retry_timeout=PATIENCE) as client:
            try:
                await client.ping()
            except Unavailable:
                pass
            else:
                yield client
                return
    from holdfast.store.console import is_new_file

    if is_new_file(settings.database_url):
        raise Misconfigured(f"there is nothing to talk to here: {HOW}")
    async with _direct(settings) as client:
        yield client


@asynccontextmanager
async def _direct(settings: Settings) -> AsyncIterator[AsyncClient]:
    """A node in this process, on the database of the settings. Whoever has the database is its administrator."""
    from holdfast.cli.in_process_transport import InProcessTransport
    from holdfast.compose import build_api, open_engine
    from holdfast.store.console import dialect_of, is_new_file

    if dialect_of(settings.database_url) == "sqlite" and is_new_file(settings.database_url):
        source = settings.sources.get("database_url", "HOLDFAST_DATABASE_URL")
        raise Misconfigured(f"{source}: there is no such file: to look does not make one ('holdfast migrate' does)")
    key = secrets.token_hex(32)
    small = msgspec.structs.replace(settings, pool_size=min(settings.pool_size, 4), admin_key=key)
    with starting(settings):
        engine = await open_engine(small)
    try:
        api = build_api(small, engine)
        async with AsyncClient("http://database", key, retry_timeout=PATIENCE, transport=InProcessTransport(api)) as client:
            yield client
    finally:
        await engine.aclose()


def _key(settings: Settings) -> str:
    """The key for the service that the settings name."""
    found = settings.api_key or settings.admin_key
    if found is None and "@" not in (settings.api_url or ""):
        raise Misconfigured("HOLDFAST_API_KEY: the service wants a key: give --key, or set HOLDFAST_API_KEY")
    return found or ""
