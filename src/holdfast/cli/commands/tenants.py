"""`holdfast tenants`: who shares the engine, and what each may have."""

from collections.abc import Callable
from typing import Any

import click

from holdfast.cli.commands.jobs import first
from holdfast.cli.param_types import RATE, WHOLE
from holdfast.cli.render import Column, as_json, json_option, listing, span
from holdfast.cli.target import asked, way_options
from holdfast.sdk import calls
from holdfast.sdk.models import Tenant

COLUMNS: list[Column[Tenant]] = [
    Column("tenant", lambda tenant: tenant.name, text=True),
    Column("weight", lambda tenant: tenant.weight),
    Column("rate", lambda tenant: tenant.rate),
    Column("window", lambda tenant: span(tenant.rate_window), spare=1),
    Column("backlog", lambda tenant: tenant.backlog),
    Column("in a queue", lambda tenant: tenant.queue_backlog, spare=2),
    Column("since", lambda tenant: tenant.created_at, spare=3),
]


def quota_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of what a tenant may have."""
    for flag, kind, text in (
        ("--queue-backlog", WHOLE, "unfinished jobs in one queue"),
        ("--backlog", WHOLE, "unfinished jobs in all"),
        ("--rate-window", RATE, "the window of the rate, such as 60s"),
        ("--rate", WHOLE, "cost that may be submitted in each window"),
        ("--weight", WHOLE, "its share of the turns, against the weights of others"),
    ):
        command = click.option(flag, type=kind, metavar="N|none", help=text)(command)
    return command


@click.group()
def tenants() -> None:
    r"""Tenants: who shares the engine, and what each may have. For administrators.

    \b
      holdfast tenants list
    """


@tenants.command("list")
@json_option
@way_options
def list_tenants(*, json: bool) -> None:
    r"""Tenants that were entered, by name; – is the installation's default.

    \b
      holdfast tenants list
    """
    found = asked(lambda client: first(client.pages(calls.tenants()), 0))
    if json:
        print(as_json({"items": found}))
    else:
        listing(found, COLUMNS, none="no tenants were entered: those that submit have the defaults")


@tenants.command()
@click.argument("name", metavar="TENANT")
@quota_options
@json_option
@way_options
def create(name: str, *, json: bool, **quotas: Any) -> None:
    r"""Enter a tenant.

    \b
      holdfast tenants create acme --weight 3 --rate 1000 --rate-window 60s
    """
    _shown(calls.create_tenant(name, _given(quotas)), json=json)


@tenants.command("set")
@click.argument("name", metavar="TENANT")
@quota_options
@json_option
@way_options
def set_quotas(name: str, *, json: bool, **quotas: Any) -> None:
    r"""Change what a tenant may have; none goes back to the default.

    \b
      holdfast tenants set acme --backlog 50000
      holdfast tenants set acme --rate none
    """
    changes = _given(quotas)
    if not changes:
        raise click.UsageError("say what to set, such as --weight 3")
    _shown(calls.change_tenant(name, changes), json=json)


def _given(quotas: dict[str, Any]) -> dict[str, Any]:
    return {name: None if value == "none" else value for name, value in quotas.items() if value is not None}


def _shown(call: calls.Call[Tenant], *, json: bool) -> None:
    tenant = asked(lambda client: client.execute(call))
    if json:
        print(as_json(tenant))
    else:
        listing([tenant], COLUMNS, none="")
