"""`holdfast serve`: a node of the HTTP service."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator

import click

from holdfast.api.app import Api
from holdfast.api.server.server import bind
from holdfast.api.server.server import serve as answer
from holdfast.api.server.timeouts import ServerLimits
from holdfast.cli.checks.database import warn_of_loss
from holdfast.cli.commands.work import say
from holdfast.cli.event_loop import collect_seldom, run
from holdfast.cli.exit_codes import starting
from holdfast.cli.options import settings_options
from holdfast.compose import build_api, open_engine, require_access
from holdfast.config import Settings, shown_url
from holdfast.errors import Misconfigured


@click.command()
@settings_options("host", "port")
def serve(settings: Settings) -> None:
    r"""Answer HTTP requests, on any number of nodes beside each other.

    \b
      holdfast serve
      holdfast serve --port 8081 --database-url postgresql://localhost/jobs
    """
    run(_serve(settings))


async def _serve(settings: Settings) -> None:
    with starting(settings):
        engine = await open_engine(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await require_access(settings, engine)
        await warn_of_loss(settings, settings.database_url, say)
        api = build_api(settings, engine)
        async with serving(settings, api):
            housekeeping = asyncio.create_task(engine.run_maintenance(stop))
            await stop.wait()
            say("stopping: requests in progress are finished, streams are ended")
            await asyncio.gather(housekeeping, return_exceptions=True)
    finally:
        await engine.aclose()
    say("stopped")


@contextlib.asynccontextmanager
async def serving(settings: Settings, api: Api, *, choose: bool = False) -> AsyncIterator[str]:
    """The API answers within this block; its address. `choose`: another port will do if this one is taken."""
    try:
        listening = bind(settings.host, settings.port)
    except Misconfigured:
        if not choose:
            raise
        listening = bind(settings.host, 0)
        say(f"port {settings.port} is taken; this one takes a free port")
    host, port = listening.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    collect_seldom(20_000)
    up, stop = asyncio.Event(), asyncio.Event()
    limits = ServerLimits(connections=settings.max_connections)
    answering = asyncio.create_task(answer(api, listening, stop=stop, ready=up.set, limits=limits))
    try:
        await up.wait()
        say(f"the API answers on {url}; its jobs are kept in {shown_url(settings.database_url)}")
        yield url
    finally:
        stop.set()
        await answering
