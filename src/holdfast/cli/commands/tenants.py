"""`holdfast tenants`: list tenants, and set their weights and quotas."""

from collections.abc import Callable
from typing import Any

import click

from holdfast.cli.commands.jobs import take
from holdfast.cli.param_types import INTEGER_LIMIT, RATE_LIMIT
from holdfast.cli.render import Column, as_json, json_option, print_list, span
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import calls
from holdfast.sdk.models import Tenant

COLUMNS: list[Column[Tenant]] = [
    Column("tenant", lambda tenant: tenant.name, text=True),
    Column("weight", lambda tenant: tenant.weight),
    Column("rate", lambda tenant: tenant.rate),
    Column("window", lambda tenant: span(tenant.rate_window), drop_order=1),
    Column("backlog", lambda tenant: tenant.backlog),
    Column("per queue", lambda tenant: tenant.queue_backlog, drop_order=2),
    Column("since", lambda tenant: tenant.created_at, drop_order=3),
]


def quota_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags for weight and quotas of a tenant."""
    for flag, kind, text in (
        ("--queue-backlog", INTEGER_LIMIT, "unfinished jobs per queue"),
        ("--backlog", INTEGER_LIMIT, "unfinished jobs in total"),
        ("--rate-window", RATE_LIMIT, "window of the rate, such as 60s"),
        ("--rate", INTEGER_LIMIT, "total cost that may be submitted per window"),
        ("--weight", INTEGER_LIMIT, "share of the workers, relative to the weights of other tenants"),
    ):
        command = click.option(flag, type=kind, metavar="N|none", help=text)(command)
    return command


@click.group()
def tenants() -> None:
    r"""List tenants, and set their weights and quotas. For administrators.

    \b
      holdfast tenants list
    """


@tenants.command("list")
@json_option
@target_options
def list_tenants(*, json: bool) -> None:
    r"""List tenants with their own settings, by name; – means the default of the installation.

    \b
      holdfast tenants list
    """
    listed = run_with_client(lambda client: take(client.pages(calls.tenants()), 0))
    if json:
        print(as_json({"items": listed}))
    else:
        print_list(listed, COLUMNS, none="no tenants have their own settings: all use the defaults")


@tenants.command()
@click.argument("name", metavar="TENANT")
@quota_options
@json_option
@target_options
def create(name: str, *, json: bool, **quotas: Any) -> None:
    r"""Create a tenant.

    \b
      holdfast tenants create acme --weight 3 --rate 1000 --rate-window 60s
    """
    _print_tenant(calls.create_tenant(name, _given(quotas)), json=json)


@tenants.command("set")
@click.argument("name", metavar="TENANT")
@quota_options
@json_option
@target_options
def set_quotas(name: str, *, json: bool, **quotas: Any) -> None:
    r"""Change weight or quotas of a tenant; `none` restores the default.

    \b
      holdfast tenants set acme --backlog 50000
      holdfast tenants set acme --rate none
    """
    changes = _given(quotas)
    if not changes:
        raise click.UsageError("nothing to set: use a flag such as --weight 3")
    _print_tenant(calls.change_tenant(name, changes), json=json)


def _given(quotas: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value == "none" else value for name, value in quotas.items() if value is not None}


def _print_tenant(call: calls.Call[Tenant], *, json: bool) -> None:
    tenant = run_with_client(lambda client: client.execute(call))
    if json:
        print(as_json(tenant))
    else:
        print_list([tenant], COLUMNS, none="")
