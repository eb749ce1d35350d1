"""`holdfast webhooks`: circuit breakers of destinations, and signing secrets of tenants."""

import click

from holdfast.cli.commands.jobs import take
from holdfast.cli.render import Column, as_json, json_option, local, note, print_list
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import operator_calls
from holdfast.sdk.models import Breaker

COLUMNS: list[Column[Breaker]] = [
    Column("destination", lambda breaker: breaker.destination, text=True),
    Column("tenant", lambda breaker: breaker.tenant, text=True),
    Column("state", lambda breaker: breaker.state),
    Column("failures", lambda breaker: breaker.failures),
    Column("next try", lambda breaker: breaker.until, drop_order=1),
    Column("changed", lambda breaker: breaker.changed_at, drop_order=2),
    Column("error", lambda breaker: breaker.error, drop_order=3, text=True),
]


@click.group()
def webhooks() -> None:
    r"""List failing webhook destinations, and manage the secrets that sign webhooks.

    \b
      holdfast webhooks breakers
      holdfast webhooks rotate-secret acme
    """


@webhooks.command()
@click.option("--tenant", metavar="VALUE", help="of this tenant (for administrators)")
@json_option
@target_options
def breakers(tenant: str | None, *, json: bool) -> None:
    r"""List the circuit breakers of webhook destinations that failed recently.

    \b
      holdfast webhooks breakers
    """
    listed = run_with_client(lambda client: take(client.pages(operator_calls.breakers(tenant)), 0))
    if json:
        print(as_json({"items": listed}))
    else:
        print_list(listed, COLUMNS, none="no webhook destination failed recently")


@webhooks.command()
@click.argument("tenant", metavar="TENANT")
@json_option
@target_options
def secret(tenant: str, *, json: bool) -> None:
    r"""Show when the webhook secret of a tenant was created.

    The secret itself is shown only when it is created.

    \b
      holdfast webhooks secret acme
    """
    shown = run_with_client(lambda client: client.execute(operator_calls.webhook_secret(tenant)))
    if json:
        print(as_json(shown))
        return
    previous = (
        "" if shown.previous_until is None else f"; the previous one is valid until {local(shown.previous_until)}"
    )
    print(f"the webhook secret of {tenant} was created {local(shown.created_at)}{previous}")


@webhooks.command("rotate-secret")
@click.argument("tenant", metavar="TENANT")
@click.option("--overlap", metavar="SPAN", help="time for which the previous secret stays valid; default: 24h")
@json_option
@target_options
def rotate_secret(tenant: str, overlap: str | None, *, json: bool) -> None:
    r"""Create a webhook secret for a tenant and print it; it is not shown again.

    \b
      holdfast webhooks rotate-secret acme --overlap 2d
    """
    created = run_with_client(lambda client: client.execute(operator_calls.rotate_webhook_secret(tenant, overlap)))
    if json:
        print(as_json(created))
        return
    note(f"webhook secret of {tenant}. Keep it: it is not shown again.")
    print(created.secret)


@webhooks.command("delete-secret")
@click.argument("tenant", metavar="TENANT")
@target_options
def delete_secret(tenant: str) -> None:
    r"""Delete the webhook secret of a tenant; its webhooks are no longer signed.

    \b
      holdfast webhooks delete-secret acme
    """
    run_with_client(lambda client: client.execute(operator_calls.delete_webhook_secret(tenant)))
    print(f"{tenant} has no webhook secret")
