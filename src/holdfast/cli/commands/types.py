"""`holdfast types`: which types of jobs there are workers for, and what their payload is."""

from typing import Any

import click

from holdfast.cli.commands.jobs import first
from holdfast.cli.render import Column, ago, as_json, json_option, listing
from holdfast.cli.target import asked, way_options
from holdfast.sdk import calls
from holdfast.sdk.models import JobType


def arguments(schema: dict[str, Any] | None) -> str | None:
    """The names of the arguments, those that may be left out in brackets."""
    if schema is None:
        return None
    required = schema.get("required", [])
    return ", ".join(name if name in required else f"[{name}]" for name in schema.get("properties", {}))


COLUMNS: list[Column[JobType]] = [
    Column("type", lambda each: each.type, text=True),
    Column("tenant", lambda each: each.tenant, spare=3),
    Column("queues", lambda each: ", ".join(each.queues), spare=2, text=True),
    Column("workers", lambda each: each.workers),
    Column("last seen", lambda each: ago(each.last_seen), spare=4),
    Column("arguments", lambda each: arguments(each.schema), spare=1, text=True),
]


@click.command()
@click.option("--tenant", metavar="VALUE", help="as this tenant sees them (for administrators)")
@json_option
@way_options
def types(tenant: str | None, *, json: bool) -> None:
    r"""Types of jobs that workers handle; --json tells the JSON Schema of each payload.

    \b
      holdfast types
      holdfast types --json | jq '.items[] | select(.type == "webhook") | .schema'
    """
    found = asked(lambda client: first(client.pages(calls.job_types(tenant)), 0))
    if json:
        print(as_json({"items": found}))
    else:
        listing(found, COLUMNS, none="no types: no worker told of any yet; 'holdfast work myapp.jobs:app' starts one")
