"""`holdfast workers`: list workers, and drain a node."""

import click

from holdfast.cli.render import Column, as_json, json_option, print_list, size, span
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import calls
from holdfast.sdk.models import Worker


def state(worker: Worker) -> str:
    """Return the state of a worker: alive, draining or lost."""
    if not worker.alive:
        return "lost"
    return "draining" if worker.draining else "alive"


COLUMNS: list[Column[Worker]] = [
    Column("id", lambda worker: worker.id, spare=1),
    Column("worker", lambda worker: worker.name or worker.id, text=True),
    Column("state", state),
    Column("busy", lambda worker: f"{worker.running}/{worker.slots}"),
    Column("heartbeat", lambda worker: f"{span(worker.heartbeat_age)} ago"),
    Column("memory", lambda worker: size(worker.memory), spare=3),
    Column("queues", lambda worker: ", ".join(worker.queues), spare=2, text=True),
    Column("up since", lambda worker: worker.started_at, spare=4),
    Column("host", lambda worker: worker.host, spare=5),
    Column("pid", lambda worker: None if worker.pid is None else str(worker.pid), spare=6),
    Column("version", lambda worker: worker.version, spare=7),
]


@click.group(invoke_without_command=True)
@json_option
@target_options
@click.pass_context
def workers(context: click.Context, *, json: bool) -> None:
    r"""List workers: their slots, running jobs and last heartbeat.

    \b
      holdfast workers
      holdfast workers --json | jq '.items[] | select(.alive | not)'
      holdfast workers drain w-019a8c5e7f3b2d40
    """
    if context.invoked_subcommand is not None:
        return
    found = run_with_client(lambda client: client.execute(calls.workers()))
    if json:
        print(as_json({"items": found}))
    else:
        print_list(found, COLUMNS, none="no workers: start one with 'holdfast work myapp.jobs:app'")


@workers.command()
@click.argument("worker", metavar="ID")
@json_option
@target_options
def drain(worker: str, *, json: bool) -> None:
    r"""Take a node out of service: drain all worker processes of its `holdfast work`.

    They claim no more jobs, finish running ones for up to HOLDFAST_DRAIN_SECONDS, release the others, and exit with 0.
    They start draining at their next heartbeat. Safe to repeat.

    \b
      holdfast workers drain w-019a8c5e7f3b2d40
    """
    found = run_with_client(lambda client: client.execute(calls.drain_worker(worker)))
    if json:
        print(as_json({"items": found}))
        return
    running = sum(each.running for each in found)
    print(f"draining {len(found)} worker{'s' if len(found) > 1 else ''}, with {running} jobs running:")
    print_list(found, COLUMNS, none="")
