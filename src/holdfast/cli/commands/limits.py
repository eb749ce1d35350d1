"""`holdfast limits`: list, set and remove limits of queues, tenants and concurrency keys."""

from collections.abc import Callable
from typing import Any

import click

from holdfast.cli.commands.queues import rate_text
from holdfast.cli.render import Column, as_json, json_option, print_list
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import operator_calls
from holdfast.sdk.models import Limit
from holdfast.sdk.operator_calls import LimitTarget


def _target_text(limit: Limit) -> str:
    if limit.kind == "key":
        return f"key {limit.concurrency_key} of {limit.tenant}"
    return f"{limit.kind} {limit.queue or limit.tenant}"


COLUMNS: list[Column[Limit]] = [
    Column("limit of", _target_text, text=True),
    Column("at once", lambda limit: limit.max_running),
    Column("rate", lambda limit: rate_text(limit.rate)),
    Column("used", lambda limit: limit.used),
    Column("free", lambda limit: limit.room, drop_order=1),
    Column("changed", lambda limit: limit.changed_at, drop_order=2),
    Column("by", lambda limit: limit.changed_by, drop_order=3, text=True),
]


def _limited_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for flag, name, text in (
        ("--concurrency-key", "concurrency_key", "concurrency key of the tenant"),
        ("--tenant", "tenant", "tenant to limit, or the tenant of the concurrency key"),
        ("--queue", "queue", "queue to limit"),
    ):
        command = click.option(flag, name, metavar="NAME", help=text)(command)
    return command


@click.group()
def limits() -> None:
    r"""List, set and remove limits of queues, tenants and concurrency keys. For administrators.

    \b
      holdfast limits list
      holdfast limits set --tenant acme --max-running 20
    """


@limits.command("list")
@click.option("--kind", type=click.Choice(["queue", "tenant", "key"]), help="only limits of this kind")
@click.option("--tenant", metavar="NAME", help="only concurrency keys of this tenant")
@json_option
@target_options
def list_limits(kind: str | None, tenant: str | None, *, json: bool) -> None:
    r"""List the limits that were set, with the number of running jobs that count against each.

    \b
      holdfast limits list --kind tenant
    """
    listed = run_with_client(lambda client: client.execute(operator_calls.limits(kind, tenant)))
    if json:
        print(as_json({"items": listed}))
    else:
        print_list(listed, COLUMNS, none="no limits: set one with 'holdfast limits set'")


@limits.command("set")
@_limited_options
@click.option("--max-running", type=click.IntRange(0), metavar="N", help="jobs that run at once, on all workers")
@click.option("--rate", metavar="RATE", help="jobs that start per time, such as 10/s or 100/m")
@json_option
@target_options
def set_limit(*, max_running: int | None, rate: str | None, json: bool, **target: str | None) -> None:
    r"""Set the limit of a queue, a tenant or a concurrency key.

    A flag that is left out removes that part of the limit.

    \b
      holdfast limits set --tenant acme --max-running 20 --rate 100/m
      holdfast limits set --tenant acme --concurrency-key stripe --max-running 3
    """
    if max_running is None and rate is None:
        raise click.UsageError("nothing to set: use --max-running or --rate; 'holdfast limits remove' removes a limit")
    _put(LimitTarget(**target), max_running, rate, json=json)


@limits.command()
@_limited_options
@json_option
@target_options
def remove(*, json: bool, **target: str | None) -> None:
    r"""Remove the limit of a queue, a tenant or a concurrency key.

    A concurrency key without a limit runs one job at a time.

    \b
      holdfast limits remove --tenant acme
    """
    _put(LimitTarget(**target), None, None, json=json)


def _put(target: LimitTarget, max_running: int | None, rate: str | None, *, json: bool) -> None:
    if target == LimitTarget():
        raise click.UsageError("name what to limit: --queue, --tenant, or --tenant and --concurrency-key")
    limit = run_with_client(lambda client: client.execute(operator_calls.set_limit(target, max_running, rate)))
    if json:
        print(as_json(limit))
    else:
        print_list([limit], COLUMNS, none="")
