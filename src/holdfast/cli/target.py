"""Target of a command: a service with its URL and API key, or a database.

For a database, the command runs the API in its own process and sends the same requests to it, so that both targets give
the same results.
"""

import functools
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from holdfast.cli.exit_codes import startup_errors
from holdfast.cli.options import current_settings, store_flags
from holdfast.cli.state_dir import ADMIN_KEY, FOLDER, URL, read_url
from holdfast.config import Settings
from holdfast.errors import Misconfigured, Unavailable
from holdfast.sdk.async_client import AsyncClient

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

HOW_TO_CONNECT = (
    "start 'holdfast up', or name a service (--api and --key, or HOLDFAST_API_URL and HOLDFAST_API_KEY) "
    "or a database (--url, or HOLDFAST_DATABASE_URL)"
)
RETRY_TIMEOUT_S = 3.0
"""Time for which a command retries an unavailable service; short because a person waits."""


class CommandTarget(NamedTuple):
    """Service (if there is an API key) or database that a command uses."""

    url: str
    key: str | None
    source: str
    """Flag, variable or file that named it, for messages."""

    @property
    def is_service(self) -> bool:
        """True for a service, which is reached over HTTP."""
        return self.key is not None


def target_options(command: F) -> F:
    """Give a command `--api`, `--key`, `--url` and `--config`, for `run_with_client`."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in ("api_url", "api_key", "database_url")}
        store_flags(given, kwargs.pop("config"))
        return command(*args, **kwargs)

    decorated: Any = run
    for flags, name, text in (
        (("--config",), "config", "settings file, default ./holdfast.toml"),
        (("--url", "--database-url"), "database_url", "database to use directly [HOLDFAST_DATABASE_URL]"),
        (("--key", "--api-key"), "api_key", "API key for the service [HOLDFAST_API_KEY]"),
        (("--api", "--api-url"), "api_url", "URL of the service to use [HOLDFAST_API_URL]"),
    ):
        kind = {"type": click.Path(path_type=Path), "metavar": "FILE"} if name == "config" else {"metavar": "VALUE"}
        decorated = click.option(*flags, name, help=text, **kind)(decorated)
    with_options: F = decorated
    return with_options


def resolve_target(settings: Settings) -> CommandTarget:
    """Choose the target: by flag, then a database, a service, or the default database."""
    sources = settings.sources
    api, database = sources.get("api_url", ""), sources.get("database_url", "")
    if api.startswith("--") and database.startswith("--"):
        raise click.UsageError("--api and --url exclude each other: use one of them")
    if settings.api_url is not None and (api.startswith("--") or not database):
        return CommandTarget(settings.api_url, _key(settings), api)
    if database:
        return CommandTarget(settings.database_url, None, database)
    return CommandTarget(settings.database_url, None, "the default")


def local_up(folder: Path | None = None) -> CommandTarget | None:
    """Return the service that `holdfast up` runs in this folder."""
    state_dir = folder or Path(FOLDER)
    url = read_url(state_dir)
    try:
        key = (state_dir / ADMIN_KEY).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return CommandTarget(url, key, str(state_dir / URL)) if url and key else None


@asynccontextmanager
async def open_client(settings: Settings, *, lasting_key: bool = False) -> AsyncIterator[AsyncClient]:
    """Open a client for the target of the settings. Raises `Misconfigured` or `Unavailable`.

    With `lasting_key`, the API key in use must be valid after the command too, so a database needs an admin key.
    """
    target = resolve_target(settings)
    if target.source == "the default":
        async with _open_default(settings, lasting_key=lasting_key) as client:
            yield client
    elif target.is_service:
        async with AsyncClient(target.url, target.key, retry_timeout=RETRY_TIMEOUT_S) as client:
            yield client
    else:
        async with _open_database(settings, lasting_key=lasting_key) as client:
            yield client


def run_with_client(action: Callable[[AsyncClient], Coroutine[Any, Any, T]], *, lasting_key: bool = False) -> T:
    """Run an action with a client for the target of the current command; see `open_client`."""
    from holdfast.cli.event_loop import run
    from holdfast.telemetry import logs

    settings = current_settings()
    logs.set_up(settings.log_format, settings.log_level)

    async def main() -> T:
        async with open_client(settings, lasting_key=lasting_key) as client:
            return await action(client)

    return run(main())


@asynccontextmanager
async def _open_default(settings: Settings, *, lasting_key: bool) -> AsyncIterator[AsyncClient]:
    """Open the running `holdfast up` of this folder, or else the SQLite file it would use."""
    up = local_up()
    if up is not None:
        key = settings.api_key or settings.admin_key or up.key
        async with AsyncClient(up.url, key, retry_timeout=RETRY_TIMEOUT_S) as client:
            try:
                await client.ping()
            except Unavailable:
                pass
            else:
                yield client
                return
    from holdfast.store.console import is_new_file

    if is_new_file(settings.database_url):
        raise Misconfigured(f"no service and no database found here: {HOW_TO_CONNECT}")
    async with _open_database(settings, lasting_key=lasting_key) as client:
        yield client


@asynccontextmanager
async def _open_database(settings: Settings, *, lasting_key: bool) -> AsyncIterator[AsyncClient]:
    """Run the API in this process, with admin rights: access to the database implies them."""
    from holdfast.cli.in_process_transport import InProcessTransport
    from holdfast.compose import build_api, open_engine
    from holdfast.store.console import dialect_of, is_new_file

    if dialect_of(settings.database_url) == "sqlite" and is_new_file(settings.database_url):
        source = settings.sources.get("database_url", "HOLDFAST_DATABASE_URL")
        raise Misconfigured(f"{source}: no such file; create it with 'holdfast migrate'")
    if lasting_key and settings.admin_key is None:
        raise Misconfigured(
            "HOLDFAST_ADMIN_KEY: a token belongs to an API key, and a database alone has none in use: name a service "
            "with --api and --key, or set HOLDFAST_ADMIN_KEY as on the nodes"
        )
    key = settings.admin_key or secrets.token_hex(32)
    reduced = msgspec.structs.replace(settings, pool_size=min(settings.pool_size, 4), admin_key=key)
    with startup_errors(settings):
        engine = await open_engine(reduced)
    try:
        api = build_api(reduced, engine)
        transport = InProcessTransport(api)
        async with AsyncClient("http://database", key, retry_timeout=RETRY_TIMEOUT_S, transport=transport) as client:
            yield client
    finally:
        await engine.aclose()


def _key(settings: Settings) -> str:
    """Return the API key for the service of the settings."""
    key = settings.api_key or settings.admin_key
    if key is None and "@" not in (settings.api_url or ""):
        raise Misconfigured("HOLDFAST_API_KEY: the service needs an API key: use --key, or set HOLDFAST_API_KEY")
    return key or ""
