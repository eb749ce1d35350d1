"""`holdfast queues`: list, pause and resume queues, and set their limits."""

from datetime import datetime
from typing import Any

import click
import msgspec

from holdfast.cli.commands.jobs import take
from holdfast.cli.param_types import FUTURE_TIME, INTEGER_LIMIT, RATE_LIMIT
from holdfast.cli.render import Column, ago, as_json, json_option, note, print_list, span
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import calls
from holdfast.sdk.models import Queue
from holdfast.wire.limits import RateOut


def state(queue: Queue) -> str:
    """Return whether a queue is paused, and until when."""
    if not queue.paused:
        return "open"
    return "paused" if queue.until is None else f"paused, ends {ago(queue.until)}"


def rate_text(rate: RateOut | None) -> str | None:
    """Return a rate limit in the form that `--rate` takes, such as "10/s"."""
    if rate is None:
        return None
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        if rate.per == length:
            return f"{rate.limit}/{unit}"
    return f"{rate.limit}/{rate.per:g}s"


COLUMNS: list[Column[Queue]] = [
    Column("queue", lambda queue: queue.name, text=True),
    Column("state", state),
    Column("ready", lambda queue: queue.statuses.ready),
    Column("running", lambda queue: queue.statuses.running),
    Column("later", lambda queue: queue.statuses.scheduled + queue.statuses.retrying, drop_order=2),
    Column("dead", lambda queue: queue.statuses.dead),
    Column("oldest", lambda queue: span(queue.oldest_wait), drop_order=1),
    Column("in/s", lambda queue: queue.rates.submitted, drop_order=3),
    Column("done/s", lambda queue: queue.rates.finished, drop_order=3),
    Column("failed/s", lambda queue: queue.rates.failed, drop_order=4),
    Column("limit", lambda queue: queue.max_running, drop_order=5),
    Column("rate", lambda queue: rate_text(queue.rate), drop_order=6),
    Column("why", lambda queue: queue.reason, drop_order=7, text=True),
]


@click.group()
def queues() -> None:
    r"""List, pause and resume queues, and set their limits.

    \b
      holdfast queues list
      holdfast queues pause mail
    """


@queues.command("list")
@click.option("--tenant", metavar="VALUE", help="count only jobs of this tenant (for administrators)")
@json_option
@target_options
def list_queues(tenant: str | None, *, json: bool) -> None:
    r"""List all queues. Rates are averages of the last five minutes.

    \b
      holdfast queues list
    """
    listed = run_with_client(lambda client: take(client.pages(calls.queues(tenant)), 0))
    if json:
        print(as_json({"items": listed}))
    else:
        print_list(listed, COLUMNS, none="no queues yet: nothing has been submitted")


@queues.command()
@click.argument("name", metavar="QUEUE")
@click.option("--reason", default="", help="reason, shown with the queue")
@click.option(
    "--until",
    type=FUTURE_TIME,
    metavar="TIME",
    help="resume at this time, or after a duration such as 30m",
)
@json_option
@target_options
def pause(name: str, reason: str, until: datetime | None, *, json: bool) -> None:
    r"""Start no more jobs of a queue, on any worker. Running jobs continue.

    \b
      holdfast queues pause mail --reason "the provider is down" --until 30m
    """
    _change(name, {"paused": True, "reason": reason, "until": until}, json=json)


@queues.command()
@click.argument("name", metavar="QUEUE")
@json_option
@target_options
def resume(name: str, *, json: bool) -> None:
    r"""Resume a paused queue.

    \b
      holdfast queues resume mail
    """
    _change(name, {"paused": False}, json=json)


@queues.command("set")
@click.argument("name", metavar="QUEUE")
@click.option("--max-running", type=INTEGER_LIMIT, metavar="N|none", help="jobs that run concurrently, on all workers")
@click.option("--rate", type=RATE_LIMIT, metavar="RATE|none", help="jobs that start per time, such as 10/s or 100/m")
@json_option
@target_options
def set_limits(name: str, max_running: Any, rate: Any, *, json: bool) -> None:
    r"""Set the limits of a queue; `none` removes one.

    \b
      holdfast queues set mail --max-running 20
      holdfast queues set mail --rate 10/s
      holdfast queues set mail --rate none
    """
    given = {"max_running": max_running, "rate": rate}
    changes = {key: None if value == "none" else value for key, value in given.items() if value is not None}
    if not changes:
        raise click.UsageError("nothing to set: use --max-running or --rate")
    _change(name, changes, json=json)


def _change(name: str, changes: dict[str, Any], *, json: bool) -> None:
    queue = run_with_client(lambda client: client.execute(calls.change_queue(name, changes)))
    if json:
        print(as_json(queue))
    else:
        limits = f", at most {queue.max_running} at once" if queue.max_running is not None else ""
        limits += f", rate {rate_text(queue.rate)}" if queue.rate is not None else ""
        print(f"{queue.name} is {state(queue)}{limits}")
        if not any(msgspec.structs.astuple(queue.statuses)):
            note(f"holdfast: queue {queue.name!r} has no jobs: check its name")
