"""`holdfast work`: a supervisor with worker processes."""

import asyncio
import logging
import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from holdfast import __version__, tasks
from holdfast.cli.checks.database import warn_if_unsafe
from holdfast.cli.event_loop import run
from holdfast.cli.exit_codes import startup_errors
from holdfast.cli.loader import MAX_SLOTS
from holdfast.cli.options import export_flags, settings_options
from holdfast.cli.reload import watch
from holdfast.cli.worker_process import MODULE, include_flags
from holdfast.compose import open_jobs, recycling_rules
from holdfast.config import Settings
from holdfast.config.connections import SUPERVISOR_POOL_SIZE
from holdfast.model.time import in_seconds
from holdfast.telemetry import logs
from holdfast.worker.ports import SupervisorBackend
from holdfast.worker.processes.supervised_process import LaunchPlan
from holdfast.worker.processes.supervisor import Supervisor

_LOG = logging.getLogger("holdfast")

F = TypeVar("F", bound=Callable[..., Any])


class AppOptions(NamedTuple):
    """Application to run, and how it is loaded."""

    app: str
    """Name of the application; empty for the built-in job types."""
    queues: str
    """Queues and slots, as `--queues` has them."""
    include: tuple[str, ...] = ()
    """Further modules to import."""
    reload: bool = False
    """Load the application again when a Python file in this folder changes."""


def code_options(command: F) -> F:
    """Give a command the flags `--include` and `--reload`."""
    include = click.option(
        "--include", multiple=True, metavar="MODULE", help="Import this module too; it declares jobs (repeatable)."
    )
    reload = click.option(
        "--reload", is_flag=True, help="For development: load the application again when a Python file here changes."
    )
    return include(reload(command))


@click.command()
@click.argument("app", default="")
@click.option("--queues", default="", metavar="Q:N,…", help="Queues and slots per process, such as mail:10,default:5.")
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    help="Worker processes (default: HOLDFAST_WORKER_POOL_SIZE, or one per core).",
)
@code_options
@settings_options("lease_seconds", "drain_seconds", "worker_max_jobs", "worker_max_memory_mb")
def work(
    settings: Settings, app: str, queues: str, processes: int | None, include: tuple[str, ...], *, reload: bool
) -> None:
    r"""Run the jobs of APP (module:attribute) and the built-in job types.

    Without APP, it runs only the built-in types.

    \b
      holdfast work myapp.jobs:app
      holdfast work myapp.jobs:app --queues mail:10,default:5 --processes 2
      holdfast work myapp.jobs:app --include myapp.mail --reload
    """
    use_terminal_format(settings)
    run(supervise(settings, AppOptions(app, queues, include, reload), processes or settings.processes))


async def supervise(
    settings: Settings,
    options: AppOptions,
    processes: int,
    *,
    checked: Iterable[str] = (),
    on_start: Callable[[], None] = lambda: None,
) -> asyncio.Event | None:
    """Run worker processes until a signal arrives, or until an operator drains them.

    Args:
        settings: Settings of the installation.
        options: Application to run.
        processes: Number of worker processes.
        checked: URLs of databases whose durability was checked already.
        on_start: Called after the first message, to print more.

    Returns:
        None after a signal; after a drain, the event that a later signal sets.
    """
    export_flags()
    checked_urls, checking = set(checked), asyncio.Lock()

    async def open_backend(url: str) -> SupervisorBackend:
        backend = await _open(settings, url)
        try:
            async with checking:  # no other process starts work on a database that may be refused
                if url not in checked_urls:
                    await warn_if_unsafe(settings, url, say)
                    checked_urls.add(url)
        except BaseException:
            await backend.aclose()
            raise
        return backend

    supervisor = Supervisor(
        launch_plan(settings, options),
        processes,
        open_backend=open_backend,
        drain=in_seconds(settings.drain),
        say=say,
        recycling=recycling_rules(settings),
        reloading=options.reload,
    )
    number = f"{processes} worker process{'es' if processes > 1 else ''}"
    supervisor.handle_signals()
    say(f"{number} for {options.app or 'the built-in job types'}; Ctrl-C or SIGTERM stops gracefully")
    on_start()
    watching = tasks.start(_reload_on_change(supervisor), name="holdfast file watch") if options.reload else None
    try:
        await supervisor.run()
    finally:
        await tasks.stop(watching)
    say("stopped; all unfinished jobs were released")
    return supervisor.signalled if supervisor.drained else None


async def _reload_on_change(supervisor: Supervisor) -> None:
    """Load the application again whenever a Python file below the current directory changes."""

    def reload(names: list[str]) -> None:
        others = f" and {len(names) - 1} more" if len(names) > 1 else ""
        say(f"{names[0]}{others} changed: loading the application again")
        supervisor.reload()

    await watch(Path.cwd(), reload)


def launch_plan(settings: Settings, options: AppOptions) -> LaunchPlan:
    """Return how the supervisor starts worker processes."""
    modules = include_flags(options.include)
    command, forkserver = (
        ["-m", MODULE, kind, options.app, "--queues", options.queues, *modules] for kind in ("worker", "forkserver")
    )
    host = socket.gethostname()
    name, node = settings.worker_id or host, f"{host[:200]}/{os.getpid()}/{secrets.token_hex(4)}"
    silence = in_seconds(settings.worker_silence)
    return LaunchPlan(command, forkserver, MAX_SLOTS, settings.lease, name, host, __version__, silence, node)


async def _open(settings: Settings, url: str) -> SupervisorBackend:
    with startup_errors(settings):
        return await open_jobs(msgspec.structs.replace(settings, pool_size=SUPERVISOR_POOL_SIZE), url)


def use_terminal_format(settings: Settings) -> None:
    """Use the log format for people, in the worker processes too, on a terminal.

    A format in the settings takes precedence.
    """
    if sys.stderr.isatty() and "log_format" not in settings.sources:
        os.environ["HOLDFAST_LOG_FORMAT"] = "terminal"
        logs.set_up("terminal", settings.log_level)


def say(text: str, *, transient: bool = False) -> None:
    """Print a message to standard error; the next one overwrites it if it is `transient`."""
    if logs.is_json():
        if not transient:
            _LOG.info(text)
    elif not sys.stderr.isatty():
        print(f"holdfast: {text}", file=sys.stderr, flush=True)
    else:
        print(f"\r\x1b[Kholdfast: {text}", end="\r" if transient else "\n", file=sys.stderr, flush=True)
