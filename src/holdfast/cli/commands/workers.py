"""`holdfast workers`: who runs jobs, and asking them to end."""

import click

from holdfast.cli.render import Column, as_json, json_option, listing, size, span
from holdfast.cli.target import asked, way_options
from holdfast.sdk import calls
from holdfast.sdk.models import Worker


def state(worker: Worker) -> str:
    """Whether it is there, and whether it is to end."""
    if not worker.alive:
        return "lost"
    return "draining" if worker.draining else "alive"


COLUMNS: list[Column[Worker]] = [
    Column("id", lambda worker: worker.id, spare=1),
    Column("worker", lambda worker: worker.name or worker.id, text=True),
    Column("state", state),
    Column("busy", lambda worker: f"{worker.running}/{worker.slots}"),
    Column("heard", lambda worker: f"{span(worker.heartbeat_age)} ago"),
    Column("memory", lambda worker: size(worker.memory), spare=3),
    Column("queues", lambda worker: ", ".join(worker.queues), spare=2, text=True),
    Column("up since", lambda worker: worker.started_at, spare=4),
    Column("host", lambda worker: worker.host, spare=5),
    Column("pid", lambda worker: None if worker.pid is None else str(worker.pid), spare=6),
    Column("version", lambda worker: worker.version, spare=7),
]


@click.group(invoke_without_command=True)
@json_option
@way_options
@click.pass_context
def workers(context: click.Context, *, json: bool) -> None:
    r"""Who runs jobs: their slots, what they hold, when they were last heard of.

    \b
      holdfast workers
      holdfast workers --json | jq '.items[] | select(.alive | not)'
      holdfast workers drain w-019a8c5e7f3b2d40
    """
    if context.invoked_subcommand is not None:
        return
    found = asked(lambda client: client.execute(calls.workers()))
    if json:
        print(as_json({"items": found}))
    else:
        listing(found, COLUMNS, none="no workers: start one with 'holdfast work myapp.jobs:app'")


@workers.command()
@click.argument("worker", metavar="ID")
@json_option
@way_options
def drain(worker: str, *, json: bool) -> None:
    r"""Take a node out of service: the worker and the other processes of its `holdfast work` end in good order.

    They claim nothing more, finish what they run for up to HOLDFAST_DRAIN_SECONDS, hand back the rest, and exit with 0.
    They hear of it with their next heartbeat. Safe to repeat.

    \b
      holdfast workers drain w-019a8c5e7f3b2d40
    """
    found = asked(lambda client: client.execute(calls.drain_worker(worker)))
    if json:
        print(as_json({"items": found}))
        return
    running = sum(each.running for each in found)
    print(f"{len(found)} worker{'s' if len(found) > 1 else ''} to end, with {running} jobs running:")
    listing(found, COLUMNS, none="")
