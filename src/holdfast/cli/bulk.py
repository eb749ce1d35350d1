"""One action on several jobs: by their ids, or on all that match, with a bar while it takes its time."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from holdfast.cli.exit_codes import FAILED, OK, code_of, one_line
from holdfast.cli.render import as_json, note
from holdfast.cli.target import asked
from holdfast.errors import Conflict, Invalid, NotFound
from holdfast.sdk.calls import Call
from holdfast.sdk.models import Bulk
from holdfast.sdk.waiting import BulkTotal

if TYPE_CHECKING:
    from holdfast.sdk.async_client import AsyncClient

DONE = {"cancel": "cancelled", "retry": "set to run", "delete": "deleted", "replay": "replayed", "purge": "deleted"}
_FOR_GOOD = frozenset({"cancel", "delete", "purge"})

Many = Callable[[bool, str | None], Call[Bulk]]
"""The request, as a dry run or not, from this cursor on."""


class _Refused(NamedTuple):
    id: str
    code: str
    detail: str
    exit: int


def which(action: str, ids: Sequence[str], where: Mapping[str, Any], *, everything: bool) -> None:
    """Refuse what says too little, or twice, which jobs are meant."""
    if ids and (where or everything):
        raise click.UsageError("ids say which already: leave the other flags out")
    if not ids and not where and not everything:
        raise click.UsageError(f"say which to {action}: ids, a filter such as --queue mail, or --all")


def on_each(action: str, ids: Sequence[str], one: Callable[[str], Call[Any]], *, yes: bool, json: bool) -> int:
    """Do it to these jobs one by one, each with its own answer; the exit code."""
    if action == "delete":
        _sure(action, len(ids), yes=yes)

    async def act(client: "AsyncClient") -> tuple[list[str], list[_Refused]]:
        done, refused = [], []
        with bar(action, len(ids)) as advance:
            for job_id in dict.fromkeys(ids):
                try:
                    await client.execute(one(job_id))
                    done.append(job_id)
                except (Conflict, NotFound, Invalid) as error:
                    refused.append(_Refused(job_id, error.code, one_line(error), code_of(error)))
                advance(1)
        return done, refused

    done, refused = asked(act)
    if json:
        told = [{"id": each.id, "code": each.code, "detail": each.detail} for each in refused]
        print(as_json({"done": done, "refused": told}))
    else:
        for job_id in done:
            print(f"{DONE[action]} {job_id}")
        for each in refused:
            note(f"holdfast: {each.detail}")
    return max((each.exit for each in refused), default=OK)


def on_all(action: str, many: Many, *, dry_run: bool, yes: bool, json: bool, named: int | None = None) -> int:
    """Do it to all that match, or to the `named` ones; counted first, so that there is something to measure against."""

    async def act(client: "AsyncClient") -> Bulk:
        found = await _walk(client, lambda cursor: many(True, cursor))  # noqa: FBT003 - a dry run
        if dry_run or not found.matched:
            return found
        _sure(action, found.matched, yes=yes)
        with bar(action, found.matched) as advance:
            return await _walk(client, lambda cursor: many(False, cursor), advance)  # noqa: FBT003 - and not

    done = asked(act)
    missing = 0 if named is None else named - done.matched
    if json:
        told: dict[str, Any] = {"matched": done.matched, "changed": done.changed, "dry_run": dry_run}
        print(as_json(told if named is None else {**told, "missing": missing}))
    elif dry_run:
        print(f"{done.matched:,} would be {DONE[action]}; nothing was changed")
    else:
        print(f"{done.changed:,} {DONE[action]}" if done.matched else "none match")
    if missing and not json:
        note(f"holdfast: {missing:,} of the ids name no dead letter")
    return FAILED if missing or (not dry_run and done.changed < done.matched) else OK


@contextmanager
def bar(title: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, if somebody looks at it and there is more than one thing to do."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    err = Console(stderr=True)
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    unseen = not err.is_terminal or total == 1
    with Progress(*parts, console=err, transient=True, disable=unseen) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.advance(task, done)


def _sure(action: str, number: int, *, yes: bool) -> None:
    """Ask before what cannot be undone; where nobody can answer, it must have been said."""
    if yes or action not in _FOR_GOOD:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"this would {action} {number:,} for good, and nobody is there to ask: add --yes")
    click.confirm(f"{action} {number:,} job{'s' if number != 1 else ''} for good?", abort=True, err=True)


async def _walk(
    client: "AsyncClient", part: Callable[[str | None], Call[Bulk]], advance: Callable[[int], None] = lambda _: None
) -> Bulk:
    total = BulkTotal()
    while total.incomplete:
        before = total.bulk.matched
        total.add(await client.execute(part(total.cursor)))
        advance(total.bulk.matched - before)
    return total.bulk
