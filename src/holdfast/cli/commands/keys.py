"""`holdfast keys`: make, list and revoke the keys of the API."""

import click

from holdfast.cli.commands.jobs import first
from holdfast.cli.render import Column, as_json, is_past, json_option, listing, note
from holdfast.cli.target import asked, way_options
from holdfast.sdk import calls
from holdfast.sdk.models import Key

SCOPES = ("submit", "read", "cancel", "worker", "admin")


def state(key: Key) -> str:
    """Whether it is good."""
    if key.revoked_at is not None:
        return "revoked"
    return "expired" if key.expires_at is not None and is_past(key.expires_at) else "good"


COLUMNS: list[Column[Key]] = [
    Column("id", lambda key: key.id),
    Column("name", lambda key: key.name, text=True),
    Column("tenant", lambda key: key.tenant, text=True),
    Column("state", state),
    Column("scopes", lambda key: ",".join(key.scopes), spare=1),
    Column("last used", lambda key: key.last_used_at, spare=2),
    Column("created", lambda key: key.created_at, spare=3),
    Column("expires", lambda key: key.expires_at, spare=4),
]


@click.group()
def keys() -> None:
    r"""Keys of the API: make, list and revoke them. For administrators.

    \b
      holdfast keys list --tenant acme
    """


@keys.command("list")
@click.option("--tenant", metavar="VALUE", help="of this tenant")
@json_option
@way_options
def list_keys(tenant: str | None, *, json: bool) -> None:
    r"""Keys, newest first, also those that are good no more.

    \b
      holdfast keys list --tenant acme
    """
    found = asked(lambda client: first(client.pages(calls.keys(tenant)), 0))
    if json:
        print(as_json({"items": found}))
    else:
        listing(found, COLUMNS, none="no keys: make one with 'holdfast keys create NAME --scope submit'")


@keys.command()
@click.argument("name", metavar="NAME")
@click.option("--scope", "scopes", multiple=True, type=click.Choice(SCOPES), help="may be given again", required=True)
@click.option("--tenant", metavar="VALUE", help="for whom it acts")
@click.option("--expires", metavar="SPAN", help="for how long it is good, such as 90d")
@json_option
@way_options
def create(name: str, scopes: tuple[str, ...], tenant: str | None, expires: str | None, *, json: bool) -> None:
    r"""Make a key. Its token is shown this once, and alone on standard output.

    \b
      holdfast keys create "web shop" --scope submit --scope read --tenant acme --expires 90d
      HOLDFAST_API_KEY=$(holdfast keys create worker --scope worker) holdfast work myapp.jobs:app
    """
    made = asked(lambda client: client.execute(calls.create_key(name, scopes, tenant, expires)))
    if json:
        print(as_json(made))
        return
    note(f"key {made.id} of {made.tenant}, for {', '.join(made.scopes)}. Keep the token: it is shown this once.")
    print(made.token)


@keys.command()
@click.argument("key_id", metavar="ID")
@json_option
@way_options
def revoke(key_id: str, *, json: bool) -> None:
    r"""End a key, and all tokens that were made with it, on all nodes within seconds.

    \b
      holdfast keys revoke 0c5d8f1e2a3b4c5d
    """
    ended = asked(lambda client: client.execute(calls.revoke_key(key_id)))
    print(as_json(ended) if json else f"revoked {ended.id} ({ended.name})")
