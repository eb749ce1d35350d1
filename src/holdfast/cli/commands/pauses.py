"""`holdfast pauses`: list, start and end pauses of job types and tenants."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from holdfast.cli.param_types import FUTURE_TIME
from holdfast.cli.render import Column, as_json, json_option, print_list
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import operator_calls
from holdfast.sdk.models import Pause

COLUMNS: list[Column[Pause]] = [
    Column("paused", lambda pause: f"{pause.kind} {pause.name}", text=True),
    Column("since", lambda pause: pause.since),
    Column("ends", lambda pause: pause.until),
    Column("by", lambda pause: pause.by, drop_order=2, text=True),
    Column("why", lambda pause: pause.reason, drop_order=1, text=True),
]


def _paused_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for flag, name, text in (
        ("--tenant", "tenant", "all jobs of this tenant"),
        ("--type", "type_", "jobs of this type"),
    ):
        command = click.option(flag, name, metavar="NAME", help=text)(command)
    return command


@click.group()
def pauses() -> None:
    r"""List, start and end pauses of job types and tenants. For administrators.

    'holdfast queues pause' pauses a queue.

    \b
      holdfast pauses list
      holdfast pauses start --type invoice --reason "wrong tax rate" --until 2h
    """


@pauses.command("list")
@json_option
@target_options
def list_pauses(*, json: bool) -> None:
    r"""List paused job types and tenants.

    \b
      holdfast pauses list
    """
    listed = run_with_client(lambda client: client.execute(operator_calls.pauses()))
    if json:
        print(as_json({"items": listed}))
    else:
        print_list(listed, COLUMNS, none="no job type and no tenant is paused")


@pauses.command()
@_paused_options
@click.option("--reason", default="", help="reason, shown with the pause")
@click.option("--until", type=FUTURE_TIME, metavar="TIME", help="end at this time, or after a duration such as 30m")
@json_option
@target_options
def start(type_: str | None, tenant: str | None, reason: str, until: datetime | None, *, json: bool) -> None:
    r"""Start no more jobs of a type or a tenant, on any worker. Running jobs continue.

    \b
      holdfast pauses start --tenant acme --reason "invoice unpaid"
    """
    _require_one(type_, tenant)
    fields = {"type": type_, "tenant": tenant, "reason": reason, "until": until}
    pause = run_with_client(lambda client: client.execute(operator_calls.pause(fields)))
    if json:
        print(as_json(pause))
    else:
        print_list([pause], COLUMNS, none="")


@pauses.command()
@_paused_options
@target_options
def end(type_: str | None, tenant: str | None) -> None:
    r"""Resume a type or a tenant.

    \b
      holdfast pauses end --tenant acme
    """
    _require_one(type_, tenant)
    run_with_client(lambda client: client.execute(operator_calls.end_pause(type_, tenant)))
    print(f"{f'type {type_}' if type_ else f'tenant {tenant}'} is not paused")


def _require_one(type_: str | None, tenant: str | None) -> None:
    if (type_ is None) == (tenant is None):
        raise click.UsageError("use either --type or --tenant; for a queue, use 'holdfast queues pause'")
