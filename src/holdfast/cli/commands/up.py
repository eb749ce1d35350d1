"""`holdfast up`: API, dashboard and worker in one command, for small installations."""

import asyncio
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

import click
import msgspec

from holdfast import tasks
from holdfast.api.app import Api
from holdfast.cli.checks.database import warn_if_unsafe
from holdfast.cli.commands.serve import listen, tls_of
from holdfast.cli.commands.work import AppOptions, code_options, say, supervise, use_terminal_format
from holdfast.cli.demo_load import keep_busy
from holdfast.cli.event_loop import run
from holdfast.cli.exit_codes import startup_errors
from holdfast.cli.options import settings_options
from holdfast.cli.state_dir import ADMIN_KEY, FOLDER, JWT_SECRET, load_or_create_secret, published_url
from holdfast.compose import build_api, open_engine
from holdfast.config import SETTINGS, Settings
from holdfast.engine.engine import Engine
from holdfast.errors import Unavailable

DEMO = next(setting for setting in SETTINGS if setting.field == "demo")
_STATUS_INTERVAL_S = 5.0


@click.command()
@click.argument("app", required=False)
@click.option("--demo", is_flag=True, help="Submit demo jobs that sleep, fail and retry.")
@click.option("--queues", default="", metavar="Q:N,…", help="Queues and slots per process, such as mail:10,default:5.")
@click.option(
    "--processes", type=click.IntRange(1, 256), help="Worker processes (default: HOLDFAST_WORKER_POOL_SIZE, or 1)."
)
@code_options
@settings_options(
    "host", "port", "tls_cert", "tls_key", "metrics_host", "metrics_port", "lease_seconds", "drain_seconds"
)
def up(
    settings: Settings,
    app: str | None,
    *,
    demo: bool,
    queues: str,
    processes: int | None,
    include: tuple[str, ...],
    reload: bool,
) -> None:
    r"""Run API, dashboard and worker for APP (module:attribute) and the built-in job types.

    Uses an SQLite file in this folder unless the settings name a database.

    \b
      holdfast up --demo
      holdfast up myapp.jobs:app
      holdfast up myapp.jobs:app --reload
    """
    if demo:
        settings = msgspec.structs.replace(settings, demo=True)
        os.environ[DEMO.variable] = "1"  # the worker processes read the environment
    use_terminal_format(settings)
    options = AppOptions(app or "", queues, include, reload)
    run(_up(settings, options, processes or settings.worker_pool_size or 1))


async def _up(settings: Settings, options: AppOptions, processes: int) -> None:
    tls = tls_of(settings)
    if settings.jwt_secret is None:
        settings = msgspec.structs.replace(settings, jwt_secret=load_or_create_secret(JWT_SECRET))
    admin_key = settings.admin_key or load_or_create_secret(ADMIN_KEY)
    with startup_errors(settings):
        engine = await open_engine(settings, migrate=True)
    try:
        await warn_if_unsafe(settings, settings.database_url, say)
        api = build_api(settings, engine, admin_key=admin_key)
        async with listen(settings, api, tls, any_port="port" not in settings.sources) as url:
            with published_url(url):
                status = tasks.start(_print_status(engine), name="holdfast status line")
                demo = tasks.start(keep_busy(engine), name="holdfast demo load") if settings.demo else None
                try:
                    signalled = await supervise(
                        settings, options, processes,
                        checked=[settings.database_url], on_start=lambda: _print_welcome(settings, api, url),
                    )  # fmt: skip
                    if signalled is not None:
                        say("this node runs no more jobs; the API and the dashboard stay up until Ctrl-C or SIGTERM")
                        await engine.run_maintenance(signalled)
                finally:
                    await tasks.stop(status, demo)
    finally:
        await engine.aclose()


def _print_welcome(settings: Settings, api: Api, url: str) -> None:
    """Print the link to the dashboard, and commands to try.

    The link signs in once, within the hour, so that it is harmless in a log.
    """
    home = f"{url}{api.service.rules.base_path}"
    command = _command_name()
    examples = [(f"{command} top", "watch it work")]
    if settings.demo:
        hello = """'{"sleep": 1, "result": "hello"}' --queue demo --wait"""
        examples += [
            (f"{command} submit demo {hello}", "run a job"),
            (f"{command} dead groups", "dead letters by error"),
        ]
    else:
        examples += [(f"{command} jobs list", "list the jobs"), (f"{command} doctor", "find problems")]
    say(f"API reference: {home}/docs; commands in this folder find the URL and the key in {FOLDER}/")
    say(f"open the dashboard, signed in: {home}/#ticket={api.service.tickets.issue()}")
    say("or try these commands in another terminal, in this folder:")
    for line, purpose in examples:
        say(f"  {line:<32}  # {purpose}")


def _command_name() -> str:
    """Return what to type for `holdfast`: its path if it is not on the PATH."""
    script = Path(sys.prefix, "bin", "holdfast")
    on_path = shutil.which("holdfast")
    if on_path is not None and (Path(on_path) == script or not script.exists()):
        return "holdfast"
    if not script.exists():
        return f"{sys.executable} -m holdfast"
    here = Path.cwd()
    return str(script.relative_to(here)) if script.is_relative_to(here) else str(script)


async def _print_status(engine: Engine) -> None:
    """Print the number of jobs in each state at intervals, in one line."""
    while True:
        await asyncio.sleep(_STATUS_INTERVAL_S)
        jobs: Counter[str] = Counter()
        try:
            for count in await engine.jobs.counts():
                jobs[count.status.value] += count.jobs
        except Unavailable:  # the supervisor's maintenance logs an outage once
            continue
        shown = ("ready", "running", "scheduled", "retrying", "dead")
        say(" · ".join(f"{jobs[status]} {status}" for status in shown), transient=True)
