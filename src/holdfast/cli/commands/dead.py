"""`holdfast dead`: list, group, replay and purge dead letters."""

from collections.abc import Callable
from typing import Any

import click

from holdfast.cli.bulk import BulkPage, apply_to_matching, require_selection
from holdfast.cli.commands.jobs import error_text, filter_options, take
from holdfast.cli.render import Column, as_json, json_option, note, print_list
from holdfast.cli.target import run_with_client, target_options
from holdfast.sdk import calls
from holdfast.sdk.calls import Call
from holdfast.sdk.models import Bulk, DeadGroup, Job

LETTERS: list[Column[Job]] = [
    Column("id", lambda job: job.id),
    Column("type", lambda job: job.type, text=True),
    Column("queue", lambda job: job.queue, drop_order=2, text=True),
    Column("tenant", lambda job: job.tenant, drop_order=3, text=True),
    Column("died", lambda job: job.finished_at, drop_order=1),
    Column("error", lambda job: error_text(job.error), text=True),
]
GROUPS: list[Column[DeadGroup]] = [
    Column("jobs", lambda group: f"{group.count:,}{'+' if group.more else ''}"),
    Column("fingerprint", lambda group: group.fingerprint),
    Column("tenant", lambda group: group.tenant, drop_order=2, text=True),
    Column("type", lambda group: group.newest.type, drop_order=3, text=True),
    Column("last", lambda group: group.last_at, drop_order=1),
    Column("error", lambda group: error_text(group.error), text=True),
]


@click.group()
def dead() -> None:
    r"""List, group by error, replay and purge dead letters: jobs that used up their attempts.

    An ID may be shortened to its first digits, at least 8, if no other job's id begins with them.

    \b
      holdfast dead groups
      holdfast dead replay --error 5f0c2e9a
    """


@dead.command("list")
@filter_options
@click.option("-n", "--limit", type=click.IntRange(0), default=20, show_default=True, help="number of jobs; 0 for all")
@json_option
@target_options
def list_dead(where: Any, limit: int, *, json: bool) -> None:
    r"""List dead letters, newest first.

    \b
      holdfast dead list --queue mail
      holdfast dead list --error 5f0c2e9a --json
    """
    letters = run_with_client(lambda client: take(client.pages(calls.dead(where, min(limit or 200, 200))), limit))
    if json:
        print(as_json({"items": letters}))
        return
    print_list(letters, LETTERS, none="no dead letters")
    if limit and len(letters) == limit:
        note(f"showing the newest {limit}; use --limit for more, or 'holdfast dead groups' to count them by error")


@dead.command("groups")
@click.option("--tenant", metavar="VALUE", help="of this tenant (for administrators)")
@json_option
@target_options
def groups(tenant: str | None, *, json: bool) -> None:
    r"""Count dead letters by error, the most recent first.

    \b
      holdfast dead groups
      holdfast dead replay --error FINGERPRINT --dry-run
    """
    by_error = run_with_client(lambda client: take(client.pages(calls.dead_groups(tenant)), 0))
    if json:
        print(as_json({"items": by_error}))
        return
    print_list(sorted(by_error, key=lambda group: group.last_at, reverse=True), GROUPS, none="no dead letters")


def _selection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--yes", is_flag=True, help="do not ask for confirmation"),
        click.option("--dry-run", is_flag=True, help="only print how many"),
        click.option("--all", "everything", is_flag=True, help="select all dead letters, if no filter is given"),
        filter_options,
        click.argument("ids", metavar="[ID]...", nargs=-1),
    ):
        command = option(command)
    return command


@dead.command("replay")
@_selection_options
@json_option
@target_options
def replay(ids: tuple[str, ...], where: Any, *, everything: bool, dry_run: bool, yes: bool, json: bool) -> int:
    r"""Run dead letters again, by id or by filter. Each is a new generation of the same job.

    \b
      holdfast dead replay 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
      holdfast dead replay --error FINGERPRINT --dry-run
      holdfast dead replay --queue mail --after 2h
    """
    require_selection("replay", ids, where, everything=everything)

    def call(page: BulkPage) -> Call[Bulk]:
        if page.ids:
            return calls.replay_ids(page.ids, dry_run=page.dry_run)
        return calls.replay(where, everything=everything, dry_run=page.dry_run, cursor=page.cursor)

    return apply_to_matching("replay", call, ids=ids, dry_run=dry_run, yes=yes, json=json)


@dead.command("purge")
@_selection_options
@json_option
@target_options
def purge(ids: tuple[str, ...], where: Any, *, everything: bool, dry_run: bool, yes: bool, json: bool) -> int:
    r"""Delete dead letters permanently, by id or by filter.

    \b
      holdfast dead purge --before 7d --dry-run
      holdfast dead purge --error FINGERPRINT --yes
    """
    require_selection("purge", ids, where, everything=everything)

    def call(page: BulkPage) -> Call[Bulk]:
        if page.ids:
            return calls.purge_ids(page.ids, dry_run=page.dry_run)
        return calls.purge(where, everything=everything, dry_run=page.dry_run, cursor=page.cursor)

    return apply_to_matching("purge", call, ids=ids, dry_run=dry_run, yes=yes, json=json)
