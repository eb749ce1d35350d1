"""Actions on several jobs, by id or by filter, with a progress bar."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli.exit_codes import FAILED, OK, Declined, error_line, exit_code_for
from holdfast.cli.job_ids import resolve_job_id, resolve_job_ids
from holdfast.cli.render import as_json, note
from holdfast.cli.target import run_with_client
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.sdk.calls import Call
from holdfast.sdk.models import Bulk
from holdfast.sdk.waiting import BulkTotal

if TYPE_CHECKING:
    from holdfast.sdk.async_client import AsyncClient

PAST_TENSE = {
    "cancel": "cancelled",
    "retry": "set to run",
    "delete": "deleted",
    "replay": "replayed",
    "purge": "deleted",
}
_IRREVERSIBLE = frozenset({"cancel", "delete", "purge"})


class BulkPage(NamedTuple):
    """Page of an action on many jobs."""

    ids: list[str]
    """Complete ids of the jobs, if the caller selected them by id."""
    dry_run: bool
    cursor: str | None


BulkCall = Callable[[BulkPage], Call[Bulk]]
"""Builds the request of a page."""


class _Refusal(NamedTuple):
    id: str
    code: str
    detail: str
    exit_code: int


def require_selection(action: str, ids: Sequence[str], where: Mapping[str, Any], *, everything: bool) -> None:
    """Raise a usage error unless either ids, or a filter or --all, select the jobs."""
    if ids and (where or everything):
        raise click.UsageError("ids and filters exclude each other: use one of them")
    if not ids and not where and not everything:
        raise click.UsageError(f"select the jobs to {action}: by id, by a filter such as --queue mail, or with --all")


def apply_to_ids(action: str, ids: Sequence[str], one: Callable[[str], Call[Any]], *, yes: bool, json: bool) -> int:
    """Apply the action to each job in turn and print each result; return the exit code."""
    if action == "delete":
        _confirm(action, len(ids), yes=yes)

    async def act(client: "AsyncClient") -> tuple[list[str], list[_Refusal]]:
        done, refused = [], []
        with bar(action, len(ids)) as advance:
            for text in dict.fromkeys(ids):
                try:
                    job_id = await resolve_job_id(client, text)
                    if job_id not in done:
                        await client.execute(one(job_id))
                        done.append(job_id)
                except (Conflict, NotFound, Invalid) as error:
                    refused.append(_Refusal(text, error.code, error_line(error), exit_code_for(error)))
                advance(1)
        return done, refused

    done, refused = run_with_client(act)
    if json:
        refusals = [{"id": refusal.id, "code": refusal.code, "detail": refusal.detail} for refusal in refused]
        print(as_json({"done": done, "refused": refusals}))
    else:
        for job_id in done:
            print(f"{PAST_TENSE[action]} {job_id}")
        for refusal in refused:
            note(f"holdfast: {refusal.detail}")
    return max((refusal.exit_code for refusal in refused), default=OK)


def apply_to_matching(
    action: str, call: BulkCall, *, ids: Sequence[str] = (), dry_run: bool, yes: bool, json: bool
) -> int:
    """Apply the action to all jobs that match; return the exit code.

    A dry run counts the jobs first, for the confirmation and the progress bar. `ids` are the ids or prefixes, if the
    caller selected jobs by id.
    """

    async def act(client: "AsyncClient") -> tuple[Bulk, int]:
        complete = await resolve_job_ids(client, ids)
        result = await _all_pages(client, lambda cursor: call(BulkPage(complete, dry_run=True, cursor=cursor)))
        if result.matched and not dry_run:
            _confirm(action, result.matched, yes=yes)
            with bar(action, result.matched) as advance:
                result = await _all_pages(
                    client, lambda cursor: call(BulkPage(complete, dry_run=False, cursor=cursor)), advance
                )
        return result, len(complete)

    result, id_count = run_with_client(act)
    missing = id_count - result.matched if ids else 0
    if json:
        counts: dict[str, Any] = {"matched": result.matched, "changed": result.changed, "dry_run": dry_run}
        print(as_json({**counts, "missing": missing} if ids else counts))
    elif dry_run:
        print(f"{result.matched:,} would be {PAST_TENSE[action]}; nothing was changed")
    else:
        print(f"{result.changed:,} {PAST_TENSE[action]}" if result.matched else "no jobs match")
    if missing and not json:
        note(f"holdfast: {missing:,} of the ids are not dead letters")
    return FAILED if missing or (not dry_run and result.changed < result.matched) else OK


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error, if it is a terminal and `total` is not 1."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    err = Console(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    hidden = not err.is_terminal or total == 1
    with Progress(*parts, console=err, transient=True, disable=hidden) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.advance(task, done)


def _confirm(action: str, number: int, *, yes: bool) -> None:
    """Ask before an irreversible action; without a terminal, require --yes."""
    if yes or action not in _IRREVERSIBLE:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"this would {action} {number:,} permanently, and there is no terminal to confirm it: add --yes"
        )
    if not click.confirm(f"{action} {number:,} job{'s' if number != 1 else ''} permanently?", err=True):
        raise Declined("nothing was changed")


async def _all_pages(
    client: "AsyncClient", page: Callable[[str | None], Call[Bulk]], advance: Callable[[int], None] = lambda _: None
) -> Bulk:
    total = BulkTotal()
    while total.incomplete:
        before = total.bulk.matched
        total.add(await client.execute(page(total.cursor)))
        advance(total.bulk.matched - before)
    return total.bulk
