"""`holdfast queues`: how deep they are, how fast they move; pause them, resume them, set their limits."""

from datetime import datetime
from typing import Any

import click

from holdfast.cli.param_types import LATER, RATE, WHOLE
from holdfast.cli.render import Column, ago, as_json, json_option, listing, span
from holdfast.cli.target import asked, way_options
from holdfast.sdk import calls
from holdfast.sdk.models import Queue


def state(queue: Queue) -> str:
    """Whether it rests, and until when."""
    if not queue.paused:
        return "open"
    return "paused" if queue.until is None else f"paused, ends {ago(queue.until)}"


COLUMNS: list[Column[Queue]] = [
    Column("queue", lambda queue: queue.name, text=True),
    Column("state", state),
    Column("ready", lambda queue: queue.statuses.ready),
    Column("running", lambda queue: queue.statuses.running),
    Column("later", lambda queue: queue.statuses.scheduled + queue.statuses.retrying, spare=2),
    Column("dead", lambda queue: queue.statuses.dead),
    Column("oldest", lambda queue: span(queue.oldest_wait), spare=1),
    Column("in/s", lambda queue: queue.rates.submitted, spare=3),
    Column("done/s", lambda queue: queue.rates.finished, spare=3),
    Column("failed/s", lambda queue: queue.rates.failed, spare=4),
    Column("most", lambda queue: queue.max_running, spare=5),
    Column("rate", lambda queue: queue.rate, spare=6),
    Column("why", lambda queue: queue.reason, spare=7, text=True),
]


@click.group()
def queues() -> None:
    r"""Queues: how deep they are, how fast they move; pause them, resume them, set their limits.

    \b
      holdfast queues list
      holdfast queues pause mail
    """


@queues.command("list")
@click.option("--tenant", metavar="VALUE", help="count the jobs of this tenant alone (for administrators)")
@json_option
@way_options
def list_queues(tenant: str | None, *, json: bool) -> None:
    r"""All queues. Rates are of the last five minutes.

    \b
      holdfast queues list
    """
    found = asked(lambda client: client.execute(calls.queues(tenant)))
    if json:
        print(as_json({"items": found}))
    else:
        listing(found, COLUMNS, none="no queues: nothing was submitted yet")


@queues.command()
@click.argument("name", metavar="QUEUE")
@click.option("--reason", default="", help="why, for whoever wonders")
@click.option("--until", type=LATER, metavar="TIME", help="ends by itself: a time, or a length such as 30m")
@json_option
@way_options
def pause(name: str, reason: str, until: datetime | None, *, json: bool) -> None:
    r"""Have nothing of a queue started, on any worker; what runs goes on.

    \b
      holdfast queues pause mail --reason "the provider is down" --until 30m
    """
    _change(name, {"paused": True, "reason": reason, "until": until}, json=json)


@queues.command()
@click.argument("name", metavar="QUEUE")
@json_option
@way_options
def resume(name: str, *, json: bool) -> None:
    r"""Have the jobs of a queue run again.

    \b
      holdfast queues resume mail
    """
    _change(name, {"paused": False}, json=json)


@queues.command("set")
@click.argument("name", metavar="QUEUE")
@click.option("--max-running", type=WHOLE, metavar="N|none", help="jobs that run at once, on all workers together")
@click.option("--rate", type=RATE, metavar="RATE|none", help="jobs that start in a time, such as 10/s or 100/m")
@json_option
@way_options
def set_limits(name: str, max_running: Any, rate: Any, *, json: bool) -> None:
    r"""Set the limits of a queue; none takes one away.

    \b
      holdfast queues set mail --max-running 20
      holdfast queues set mail --rate none
    """
    given = {"max_running": max_running, "rate": rate}
    changes = {key: None if value == "none" else value for key, value in given.items() if value is not None}
    if not changes:
        raise click.UsageError("say what to set: --max-running or --rate")
    _change(name, changes, json=json)


def _change(name: str, changes: dict[str, Any], *, json: bool) -> None:
    queue = asked(lambda client: client.execute(calls.change_queue(name, changes)))
    if json:
        print(as_json(queue))
    else:
        limits = f", at most {queue.max_running} at once" if queue.max_running is not None else ""
        limits += f", rate {queue.rate}" if queue.rate is not None else ""
        print(f"{queue.name} is {state(queue)}{limits}")
