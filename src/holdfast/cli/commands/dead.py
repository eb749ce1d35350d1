"""`holdfast dead`: dead letters, one by one or by error; run them again, or throw them away."""

from collections.abc import Callable
from typing import Any

import click

from holdfast.cli.bulk import on_all, which
from holdfast.cli.commands.jobs import error_of, filter_options, first
from holdfast.cli.render import Column, as_json, json_option, listing, note
from holdfast.cli.target import asked, way_options
from holdfast.sdk import calls
from holdfast.sdk.calls import Call
from holdfast.sdk.models import Bulk, DeadGroup, Job

LETTERS: list[Column[Job]] = [
    Column("id", lambda job: job.id),
    Column("type", lambda job: job.type, text=True),
    Column("queue", lambda job: job.queue, spare=2, text=True),
    Column("tenant", lambda job: job.tenant, spare=3, text=True),
    Column("died", lambda job: job.finished_at, spare=1),
    Column("error", lambda job: error_of(job.error), text=True),
]
GROUPS: list[Column[DeadGroup]] = [
    Column("jobs", lambda group: f"{group.count:,}{'+' if group.more else ''}"),
    Column("fingerprint", lambda group: group.fingerprint),
    Column("tenant", lambda group: group.tenant, spare=2, text=True),
    Column("type", lambda group: group.newest.type, spare=3, text=True),
    Column("last", lambda group: group.last_at, spare=1),
    Column("error", lambda group: error_of(group.error), text=True),
]


@click.group()
def dead() -> None:
    r"""Dead letters: jobs that spent all their attempts. Look at them, run them again, throw them away.

    \b
      holdfast dead groups
      holdfast dead replay --error 5f0c2e9a
    """


@dead.command("list")
@filter_options
@click.option("-n", "--limit", type=click.IntRange(0), default=20, show_default=True, help="so many; 0 is all")
@json_option
@way_options
def list_dead(where: Any, limit: int, *, json: bool) -> None:
    r"""Dead letters, newest first.

    \b
      holdfast dead list --queue mail
      holdfast dead list --error 5f0c2e9a --json
    """
    found = asked(lambda client: first(client.pages(calls.dead(where, min(limit or 200, 200))), limit))
    if json:
        print(as_json({"items": found}))
        return
    listing(found, LETTERS, none="no dead letters")
    if limit and len(found) == limit:
        note(f"the newest {limit}: --limit shows more, 'holdfast dead groups' counts them by error")


@dead.command("groups")
@click.option("--tenant", metavar="VALUE", help="of this tenant (for administrators)")
@json_option
@way_options
def groups(tenant: str | None, *, json: bool) -> None:
    r"""Dead letters counted by error, the latest first.

    \b
      holdfast dead groups
      holdfast dead replay --error FINGERPRINT --dry-run
    """
    found = asked(lambda client: first(client.pages(calls.dead_groups(tenant)), 0))
    if json:
        print(as_json({"items": found}))
        return
    listing(sorted(found, key=lambda group: group.last_at, reverse=True), GROUPS, none="no dead letters")


def _which(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--yes", is_flag=True, help="do not ask"),
        click.option("--dry-run", is_flag=True, help="only tell how many"),
        click.option("--all", "everything", is_flag=True, help="all there are, if nothing else says which"),
        filter_options,
        click.argument("ids", metavar="[ID]...", nargs=-1),
    ):
        command = option(command)
    return command


@dead.command("replay")
@_which
@json_option
@way_options
def replay(ids: tuple[str, ...], where: Any, *, everything: bool, dry_run: bool, yes: bool, json: bool) -> int:
    r"""Run dead letters again, each as a new generation of the same job: by their ids, or all that match.

    \b
      holdfast dead replay 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
      holdfast dead replay --error FINGERPRINT --dry-run
      holdfast dead replay --queue mail --after 2h
    """
    which("replay", ids, where, everything=everything)

    def part(dry: bool, cursor: str | None) -> Call[Bulk]:  # noqa: FBT001 - as `Many` has it
        if ids:
            return calls.replay_ids(list(dict.fromkeys(ids)), dry_run=dry)
        return calls.replay(where, everything=everything, dry_run=dry, cursor=cursor)

    return on_all("replay", part, dry_run=dry_run, yes=yes, json=json, named=len(set(ids)) or None)


@dead.command("purge")
@_which
@json_option
@way_options
def purge(ids: tuple[str, ...], where: Any, *, everything: bool, dry_run: bool, yes: bool, json: bool) -> int:
    r"""Delete dead letters for good: by their ids, or all that match.

    \b
      holdfast dead purge --before 7d --dry-run
      holdfast dead purge --error FINGERPRINT --yes
    """
    which("purge", ids, where, everything=everything)

    def part(dry: bool, cursor: str | None) -> Call[Bulk]:  # noqa: FBT001 - as `Many` has it
        if ids:
            return calls.purge_ids(list(dict.fromkeys(ids)), dry_run=dry)
        return calls.purge(where, everything=everything, dry_run=dry, cursor=cursor)

    return on_all("purge", part, dry_run=dry_run, yes=yes, json=json, named=len(set(ids)) or None)
