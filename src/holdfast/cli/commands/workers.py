"""`holdfast workers`: list workers, and drain a node."""

import click

from holdfast.cli.render import Column, as_json, json_option, print_list, size, span
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import calls
from holdfast.sdk.models import Worker


def state(worker: Worker) -> str:
    """Return the state of a worker: alive, draining, lost, or why it does not respond."""
    if not worker.alive:
        return "lost"
    if worker.unresponsive_since is not None:
        return "no sign of life" if worker.blocked_by is None else f"blocked by {worker.blocked_by}"
    return "draining" if worker.draining else "alive"


COLUMNS: list[Column[Worker]] = [
    Column("id", lambda worker: worker.id, drop_order=1),
    Column("worker", lambda worker: worker.name or worker.id, text=True),
    Column("state", state),
    Column("busy", lambda worker: f"{worker.running}/{worker.slots}"),
    Column("heartbeat", lambda worker: f"{span(worker.heartbeat_age)} ago"),
    Column("memory", lambda worker: size(worker.memory), drop_order=3),
    Column("queues", lambda worker: ", ".join(worker.queues), drop_order=2, text=True),
    Column("up since", lambda worker: worker.started_at, drop_order=4),
    Column("host", lambda worker: worker.host, drop_order=5),
    Column("pid", lambda worker: None if worker.pid is None else str(worker.pid), drop_order=6),
    Column("version", lambda worker: worker.version, drop_order=7),
]


@click.group(invoke_without_command=True)
@json_option
@target_options
@click.pass_context
def workers(context: click.Context, *, json: bool) -> None:
    r"""List workers: their state, slots, running jobs and last heartbeat.

    The state is alive, draining, lost (its lease expired), "blocked by TYPE" (an async handler blocks its event loop)
    or "no sign of life" (its process is stopped; its node replaces it after HOLDFAST_WORKER_SILENCE_SECONDS).

    \b
      holdfast workers
      holdfast workers --json | jq '.items[] | select(.alive | not)'
      holdfast workers drain w-019a8c5e7f3b2d40
    """
    if context.invoked_subcommand is not None:
        return
    listed = run_with_client(lambda client: client.workers())
    if json:
        print(as_json({"items": listed}))
    else:
        print_list(listed, COLUMNS, none="no workers: start one with 'holdfast work myapp.jobs:app'")


@workers.command()
@click.argument("worker_id", metavar="ID")
@json_option
@target_options
def drain(worker_id: str, *, json: bool) -> None:
    r"""Take a node out of service: drain all worker processes of its `holdfast work`.

    They claim no more jobs, finish running ones for up to HOLDFAST_DRAIN_SECONDS, release the others, and exit with 0.
    They start draining at their next heartbeat. Safe to repeat.

    \b
      holdfast workers drain w-019a8c5e7f3b2d40
    """
    draining = run_with_client(lambda client: client.execute(calls.drain_worker(worker_id)))
    if json:
        print(as_json({"items": draining}))
        return
    running = sum(worker.running for worker in draining)
    print(f"draining {len(draining)} worker{'s' if len(draining) > 1 else ''}, with {running} jobs running:")
    print_list(draining, COLUMNS, none="")
