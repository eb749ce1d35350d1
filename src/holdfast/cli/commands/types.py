"""`holdfast types`: list the job types that workers handle, and their payloads."""

from typing import Any

import click

from holdfast.cli.commands.jobs import take
from holdfast.cli.render import Column, ago, as_json, json_option, print_list
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import calls
from holdfast.sdk.models import JobType


def arguments(schema: dict[str, Any] | None) -> str | None:
    """Return the names of the arguments, optional ones in brackets."""
    if schema is None:
        return None
    required = schema.get("required", [])
    return ", ".join(name if name in required else f"[{name}]" for name in schema.get("properties", {}))


COLUMNS: list[Column[JobType]] = [
    Column("type", lambda job_type: job_type.type, text=True),
    Column("tenant", lambda job_type: job_type.tenant, drop_order=3),
    Column("queues", lambda job_type: ", ".join(job_type.queues), drop_order=2, text=True),
    Column("workers", lambda job_type: job_type.workers),
    Column("last seen", lambda job_type: ago(job_type.last_seen), drop_order=4),
    Column("arguments", lambda job_type: arguments(job_type.schema), drop_order=1, text=True),
]


@click.command()
@click.option("--tenant", metavar="VALUE", help="types that this tenant can use (for administrators)")
@json_option
@target_options
def types(tenant: str | None, *, json: bool) -> None:
    r"""List the job types that workers handle; --json includes the JSON Schema of each payload.

    \b
      holdfast types
      holdfast types --json | jq '.items[] | select(.type == "webhook") | .schema'
    """
    job_types = run_with_client(lambda client: take(client.pages(calls.job_types(tenant)), 0))
    if json:
        print(as_json({"items": job_types}))
    else:
        print_list(job_types, COLUMNS, none="no job types yet: start a worker with 'holdfast work myapp.jobs:app'")
