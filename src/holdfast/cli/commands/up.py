"""`holdfast up`: everything under one command, for laptops, tests and small installations."""

import asyncio
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import click
import msgspec

from holdfast.api.app import Api
from holdfast.cli.checks.database import warn_of_loss
from holdfast.cli.commands.serve import listen, tls_of
from holdfast.cli.commands.work import say, supervise
from holdfast.cli.demo_load import keep_busy
from holdfast.cli.event_loop import run
from holdfast.cli.exit_codes import starting
from holdfast.cli.options import settings_options
from holdfast.cli.state_dir import ADMIN_KEY, FOLDER, JWT_SECRET, kept_secret, note_url
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
@settings_options("host", "port", "tls_cert", "tls_key", "lease_seconds", "drain_seconds")
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
    tls = tls_of(settings)
    if settings.jwt_secret is None:
        settings = msgspec.structs.replace(settings, jwt_secret=kept_secret(JWT_SECRET))
    admin_key = settings.admin_key or kept_secret(ADMIN_KEY)
    with starting(settings):
        engine = await open_engine(settings, migrate=True)
    try:
        await warn_of_loss(settings, settings.database_url, say)
        api = build_api(settings, engine, admin_key=admin_key)
        async with listen(settings, api, tls, any_port="port" not in settings.sources) as url:
            note_url(url)
            beside = [asyncio.create_task(_tell(engine))]
            if settings.demo:
                beside.append(asyncio.create_task(keep_busy(engine)))
            try:
                signalled = await supervise(
                    settings, app, queues, processes,
                    looked_at=[settings.database_url], then=lambda: _welcome(settings, api, url),
                )  # fmt: skip
                if signalled is not None:
                    say("no jobs are run here any more; the API and the dashboard stay until Ctrl-C or SIGTERM")
                    await engine.run_maintenance(signalled)
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
    finally:
        await engine.aclose()


def _welcome(settings: Settings, api: Api, url: str) -> None:
    """The last lines of the start: a way in, and what to try.

    The link opens the dashboard once, within the hour, so that it may stand in a log.
    """
    home = f"{url}{api.service.rules.base_path}"
    us = _own_name()
    tries = [(f"{us} top", "watch it work")]
    if settings.demo:
        hello = """'{"sleep": 1, "result": "hello"}' --queue demo --wait"""
        tries += [(f"{us} submit demo {hello}", "run a job"), (f"{us} dead groups", "what died, and of what")]
    else:
        tries += [(f"{us} jobs list", "what there is to do"), (f"{us} doctor", "what is wrong, if anything")]
    say(f"the API is described at {home}/docs; commands find it and its key in {FOLDER}/")
    say(f"open the dashboard, signed in: {home}/#ticket={api.service.tickets.issue()}")
    say("or try in another terminal, in this folder:")
    for command, why in tries:
        say(f"  {command:<32}  # {why}")


def _own_name() -> str:
    """What to type for this very command: its path where the shell would not find it."""
    script = Path(sys.prefix, "bin", "holdfast")
    found = shutil.which("holdfast")
    if found is not None and (Path(found) == script or not script.exists()):
        return "holdfast"
    if not script.exists():
        return f"{sys.executable} -m holdfast"
    here = Path.cwd()
    return str(script.relative_to(here)) if script.is_relative_to(here) else str(script)


async def _tell(engine: Engine) -> None:
    """Tell now and then, in one line, whether work is flowing."""
    while True:
        await asyncio.sleep(_TELL_EVERY)
        jobs: Counter[str] = Counter()
        try:
            for count in await engine.jobs.counts():
                jobs[count.status.value] += count.jobs
        except Unavailable as error:
            say(f"waiting for the database: {error}")
            continue
        shown = ("ready", "running", "scheduled", "retrying", "dead")
        say(" · ".join(f"{jobs[status]} {status}" for status in shown), passing=True)
