"""`holdfast up`: everything under one command, for laptops, tests and small installations."""

import asyncio
import os
from collections import Counter

import click
import msgspec

from holdfast.api.app import Api
from holdfast.cli.demo import keep_busy
from holdfast.cli.exits import starting
from holdfast.cli.home import ADMIN_KEY, FOLDER, JWT_SECRET, kept_secret, note_url
from holdfast.cli.options import settings_options
from holdfast.cli.running import run
from holdfast.cli.serve import serving
from holdfast.cli.work import say, supervise
from holdfast.compose import build_api, open_engine
from holdfast.config import KNOWN, Settings
from holdfast.engine.engine import Engine
from holdfast.errors import Unavailable

DEMO = next(setting for setting in KNOWN if setting.field == "demo")
_TELL_EVERY = 5.0


@click.command()
@click.argument("app", required=False)
@click.option("--demo", is_flag=True, help="Submit jobs that sleep, fail and retry, to see it work.")
@click.option("--queues", default="", metavar="Q:N,…", help="Queues and slots in each process: mail:10,default:5.")
@click.option("--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Worker processes.")
@settings_options("host", "port", "lease_seconds", "drain_seconds")
def up(settings: Settings, app: str | None, *, demo: bool, queues: str, processes: int) -> None:
    r"""Run the jobs of APP (module:attribute) and the types in the box, on SQLite unless a database is named.

    \b
      holdfast up --demo
      holdfast up myapp.jobs:app
    """
    if demo:
        settings = msgspec.structs.replace(settings, demo=True)
        os.environ[DEMO.variable] = "1"  # the workers are processes of their own
    run(_up(settings, app or "", queues, processes))


async def _up(settings: Settings, app: str, queues: str, processes: int) -> None:
    if settings.jwt_secret is None:
        settings = msgspec.structs.replace(settings, jwt_secret=kept_secret(JWT_SECRET))
    admin_key = settings.admin_key or kept_secret(ADMIN_KEY)
    with starting(settings):
        engine = await open_engine(settings, migrate=True)
    try:
        api = build_api(settings, engine, admin_key=admin_key)
        async with serving(settings, api, choose="port" not in settings.sources) as url:
            note_url(url)
            _tell_how_to_look(api, url)
            _tell_how_to_call(settings, url)
            beside = [asyncio.create_task(_tell(engine))]
            if settings.demo:
                beside.append(asyncio.create_task(keep_busy(engine)))
            try:
                await supervise(settings, app, queues, processes)
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
    finally:
        await engine.aclose()


def _tell_how_to_look(api: Api, url: str) -> None:
    """A link that opens the dashboard signed in: once, within the hour, so that it may stand in a log."""
    say(f"see it work: {url}{api.service.rules.base_path}/#ticket={api.service.tickets.issue()}")


def _tell_how_to_call(settings: Settings, url: str) -> None:
    key = '"$HOLDFAST_ADMIN_KEY"' if settings.admin_key else f"$(cat {FOLDER}/{ADMIN_KEY})"
    say(f"{url}/docs describes the API. Submit a job:")
    say(
        f"""  curl {url}/v1/jobs -H "Authorization: Bearer {key}" """
        """-H 'Content-Type: application/json' -d '{"type": "demo", "queue": "demo", "payload": {"sleep": 1}}'"""
    )


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
