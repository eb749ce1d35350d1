"""`holdfast keys`: create, list and revoke API keys."""

import click

from holdfast.cli.commands.jobs import take
from holdfast.cli.render import Column, as_json, is_past, json_option, note, print_list
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import calls, operator_calls
from holdfast.sdk.models import Key

SCOPES = ("submit", "read", "cancel", "worker", "metrics", "admin")


def state(key: Key) -> str:
    """Return the state of an API key: good, expired or revoked."""
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and is_past(key.expires_at) else "good"


COLUMNS: list[Column[Key]] = [
    Column("id", lambda key: key.id),
    Column("name", lambda key: key.name, text=True),
    Column("tenant", lambda key: key.tenant, text=True),
    Column("state", state),
    Column("scopes", lambda key: ",".join(key.scopes), drop_order=1),
    Column("last used", lambda key: key.last_used_at, drop_order=2),
    Column("created", lambda key: key.created_at, drop_order=3),
    Column("expires", lambda key: key.expires_at, drop_order=4),
]


@click.group()
def keys() -> None:
    r"""Create, list and revoke API keys. For administrators.

    \b
      holdfast keys list --tenant acme
    """


@keys.command("list")
@click.option("--tenant", metavar="VALUE", help="of this tenant")
@json_option
@target_options
def list_keys(tenant: str | None, *, json: bool) -> None:
    r"""List API keys, newest first, including expired and revoked ones.

    \b
      holdfast keys list --tenant acme
    """
    listed = run_with_client(lambda client: take(client.pages(calls.keys(tenant)), 0))
    if json:
        print(as_json({"items": listed}))
    else:
        print_list(listed, COLUMNS, none="no keys: create one with 'holdfast keys create NAME --scope submit'")


@keys.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    help="what the key permits; may be repeated",
    required=True,
)
@click.option("--tenant", metavar="VALUE", help="tenant that the key acts for")
@click.option("--expires", metavar="SPAN", help="lifetime, such as 90d")
@json_option
@target_options
def create(name: str, scopes: tuple[str, ...], tenant: str | None, expires: str | None, *, json: bool) -> None:
    r"""Create an API key and print its token, which is not shown again.

    \b
      holdfast keys create "web shop" --scope submit --scope read --tenant acme --expires 90d
      HOLDFAST_API_KEY=$(holdfast keys create worker --scope worker) holdfast work myapp.jobs:app
    """
    key = run_with_client(lambda client: client.execute(calls.create_key(name, scopes, tenant, expires)))
    if json:
        print(as_json(key))
        return
    note(f"key {key.id} of {key.tenant}, for {', '.join(key.scopes)}. Keep the token: it is not shown again.")
    print(key.token)


@keys.command()
@click.argument("key_id", metavar="ID")
@json_option
@target_options
def revoke(key_id: str, *, json: bool) -> None:
    r"""Revoke an API key and all tokens created with it, on all nodes within seconds.

    \b
      holdfast keys revoke 0c5d8f1e2a3b4c5d
    """
    key = run_with_client(lambda client: client.execute(calls.revoke_key(key_id)))
    print(as_json(key) if json else f"revoked {key.id} ({key.name})")


@keys.command()
@click.option(
    "--scope", "scopes", multiple=True, help="what the token permits; may be repeated; default: all of the key"
)
@click.option("--expires", metavar="SPAN", help="lifetime, at most 1h; default: 15m")
@json_option
@target_options
def token(scopes: tuple[str, ...], expires: str | None, *, json: bool) -> None:
    r"""Create a short-lived token with the scopes of the API key in use, or fewer, and print it.

    With a database instead of a service, the key is HOLDFAST_ADMIN_KEY, as on the nodes.

    \b
      holdfast keys token --scope read --expires 5m
    """
    call = operator_calls.create_token(scopes or None, expires)
    created = run_with_client(lambda client: client.execute(call), lasting_key=True)
    print(as_json(created) if json else created.token)
