"""`holdfast up`: everything under one command, for laptops, tests and small installations."""

import asyncio
from collections import Counter

import click

from holdfast.cli.demo import keep_busy
from holdfast.cli.exits import starting
from holdfast.cli.options import settings_options
from holdfast.cli.running import run
from holdfast.cli.work import say, supervise
from holdfast.compose import open_engine
from holdfast.config import Settings, shown_url
from holdfast.engine.engine import Engine
from holdfast.errors import Unavailable

DEMO = "holdfast.cli.demo:app"
_TELL_EVERY = 5.0


@click.command()
@click.argument("app", required=False)
@click.option("--demo", is_flag=True, help="Submit jobs that sleep, fail and retry, to see it work.")
@click.option("--queues", default="", metavar="Q:N,…", help="Queues and slots in each process: mail:10,default:5.")
@click.option("--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Worker processes.")
@settings_options("lease_seconds", "drain_seconds")
def up(settings: Settings, app: str | None, *, demo: bool, queues: str, processes: int) -> None:
    r"""Run the jobs of APP (module:attribute), or of the demo, on SQLite unless a database is named.

    \b
      holdfast up --demo
      holdfast up myapp.jobs:app
    """
    if app is None and not demo:
        raise click.UsageError("name an application, such as myapp.jobs:app, or give --demo")
    run(_up(settings, app or DEMO, queues, processes, demo=demo))


async def _up(settings: Settings, app: str, queues: str, processes: int, *, demo: bool) -> None:
    with starting(settings):
        engine = await open_engine(settings, migrate=True)
    try:
        say(f"jobs are kept in {shown_url(settings.database_url)}")
        beside = [asyncio.create_task(_tell(engine))]
        if demo:
            beside.append(asyncio.create_task(keep_busy(engine)))
        try:
            await supervise(settings, app, queues, processes)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
    finally:
        await engine.aclose()


async def _tell(engine: Engine) -> None:
    """Tell now and then, in one line, whether work is flowing."""
    while True:
        await asyncio.sleep(_TELL_EVERY)
        jobs: Counter[str] = Counter()
        try:
            for count in await engine.counts():
                jobs[count.status.value] += count.jobs
        except Unavailable as error:
            say(f"waiting for the database: {error}")
            continue
        say(" · ".join(f"{jobs[status]} {status}" for status in ("ready", "running", "scheduled", "retrying", "dead")))
