"""`holdfast work`: a supervisor with worker processes."""

import asyncio
import os
import secrets
import socket
import sys
from collections.abc import Callable, Iterable

import click
import msgspec

from holdfast import __version__
from holdfast.cli.checks.database import warn_of_loss
from holdfast.cli.event_loop import run
from holdfast.cli.exit_codes import starting
from holdfast.cli.loader import MOST_SLOTS
from holdfast.cli.options import export_flags, settings_options
from holdfast.compose import open_jobs
from holdfast.config import Settings
from holdfast.model.time import in_seconds
from holdfast.worker.ports import SupervisorBackend
from holdfast.worker.processes.supervised_process import LaunchPlan
from holdfast.worker.processes.supervisor import Supervisor


@click.command()
@click.argument("app", default="")
@click.option("--queues", default="", metavar="Q:N,…", help="Queues and slots in each process: mail:10,default:5.")
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    help="Worker processes (default: HOLDFAST_WORKER_POOL_SIZE, or one a core).",
)
@settings_options("lease_seconds", "drain_seconds")
def work(settings: Settings, app: str, queues: str, processes: int | None) -> None:
    r"""Run the jobs of APP, named as module:attribute, and the job types in the box; without APP those alone.

    \b
      holdfast work myapp.jobs:app
      holdfast work myapp.jobs:app --queues mail:10,default:5 --processes 2
    """
    run(supervise(settings, app, queues, processes or settings.processes))


async def supervise(
    settings: Settings,
    app: str,
    queues: str,
    processes: int,
    *,
    looked_at: Iterable[str] = (),
    then: Callable[[], None] = lambda: None,
) -> asyncio.Event | None:
    """Run worker processes until a signal comes; or until somebody has them drained: then tells when a signal comes.

    `then` tells the rest of what is to be told at the start.

    `looked_at`: URLs of databases that were warned of already, if there was a reason.
    """
    export_flags()
    known, looking = set(looked_at), asyncio.Lock()

    async def open_backend(url: str) -> SupervisorBackend:
        backend = await _open(settings, url)
        try:
            async with looking:  # no other process begins to work meanwhile on what may be refused
                if url not in known:
                    await warn_of_loss(settings, url, say)
                    known.add(url)
        except BaseException:
            await backend.aclose()
            raise
        return backend

    supervisor = Supervisor(
        launch_plan(settings, app, queues),
        processes,
        open_backend=open_backend,
        drain=in_seconds(settings.drain),
        say=say,
    )
    number = f"{processes} worker process{'es' if processes > 1 else ''}"
    supervisor.handle_signals()
    say(f"{number} for {app or 'the job types in the box'}; Ctrl-C or SIGTERM ends in good order")
    then()
    await supervisor.run()
    say("stopped; every unfinished job was handed back")
    return supervisor.signalled if supervisor.drained else None


def launch_plan(settings: Settings, app: str, queues: str) -> LaunchPlan:
    """How the children of this installation are started."""
    command, forkserver = (
        ["-m", "holdfast.cli.worker_process", kind, app, "--queues", queues] for kind in ("worker", "forkserver")
    )
    host = socket.gethostname()
    name, node = settings.worker_id or host, f"{host[:200]}/{os.getpid()}/{secrets.token_hex(4)}"
    return LaunchPlan(command, forkserver, MOST_SLOTS, settings.lease, name, host, __version__, node)


async def _open(settings: Settings, url: str) -> SupervisorBackend:
    with starting(settings):
        return await open_jobs(msgspec.structs.replace(settings, pool_size=4), url)


def say(text: str, *, passing: bool = False) -> None:
    """Tell the person at the terminal; what is `passing` there only until the next line is told."""
    if not sys.stderr.isatty():
        print(f"holdfast: {text}", file=sys.stderr, flush=True)
    else:
        print(f"\r\x1b[Kholdfast: {text}", end="\r" if passing else "\n", file=sys.stderr, flush=True)
