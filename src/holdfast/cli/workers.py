"""`holdfast workers`: who runs jobs."""

import click

from holdfast.cli.connection import asked, way_options
from holdfast.cli.render import Column, as_json, json_option, listing, span
from holdfast.sdk import calls
from holdfast.sdk.shapes import Worker

COLUMNS: list[Column[Worker]] = [
    Column("worker", lambda worker: worker.name or worker.id, text=True),
    Column("state", lambda worker: "alive" if worker.alive else "lost"),
    Column("busy", lambda worker: f"{worker.running}/{worker.slots}"),
    Column("heard", lambda worker: f"{span(worker.heartbeat_age)} ago"),
    Column("queues", lambda worker: ", ".join(worker.queues), spare=2, text=True),
    Column("up since", lambda worker: worker.started_at, spare=3),
    Column("host", lambda worker: worker.host, spare=4),
    Column("pid", lambda worker: None if worker.pid is None else str(worker.pid), spare=5),
    Column("version", lambda worker: worker.version, spare=6),
]


@click.command()
@json_option
@way_options
def workers(*, json: bool) -> None:
    r"""Who runs jobs: their slots, what they hold, when they were last heard of.

    \b
      holdfast workers
      holdfast workers --json | jq '.items[] | select(.alive | not)'
    """
    found = asked(lambda client: client.ask(calls.workers()))
    if json:
        print(as_json({"items": found}))
    else:
        listing(found, COLUMNS, none="no workers: start one with 'holdfast work myapp.jobs:app'")
