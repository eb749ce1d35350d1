"""`holdfast jobs`: look at jobs, follow them, cancel them, run them again, delete them."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import click
import msgspec

from holdfast.cli import show
from holdfast.cli.bulk import on_all, on_each, which
from holdfast.cli.exit_codes import FAILED, OK
from holdfast.cli.param_types import MOMENT
from holdfast.cli.render import Column, as_json, json_option, listing, note
from holdfast.cli.target import asked, way_options
from holdfast.model.state import Status
from holdfast.sdk import calls
from holdfast.sdk.async_client import AsyncClient
from holdfast.sdk.models import Error, Event, Job

F = TypeVar("F", bound=Callable[..., Any])


def error_of(error: Error | None) -> str:
    """What went wrong, in a line."""
    return "" if error is None else f"{error.kind}: {error.message}"


COLUMNS: list[Column[Job]] = [
    Column("id", lambda job: job.id),
    Column("status", lambda job: job.status.value),
    Column("type", lambda job: job.type, text=True),
    Column("queue", lambda job: job.queue, spare=3, text=True),
    Column("tenant", lambda job: job.tenant, spare=4, text=True),
    Column("tries", lambda job: f"{job.attempts}/{job.max_attempts}", spare=2),
    Column("created", lambda job: job.created_at, spare=1),
    Column("error", lambda job: error_of(job.error), 5, text=True),
]


def filter_options(command: F) -> F:
    """Give a command the flags that say which jobs; it gets them as `where`."""
    names = ("type", "queue", "tag", "tenant", "created_after", "created_before", "error")

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in (*names, "status") if name in kwargs}
        return command(*args, where={name: value for name, value in given.items() if value is not None}, **kwargs)

    decorated: Any = run
    for flag, name, text, kind in (
        ("--error", "error", "whose last error has this fingerprint (see 'holdfast dead groups')", None),
        ("--before", "created_before", "submitted before this: a time, or how long ago, such as 2h", MOMENT),
        ("--after", "created_after", "submitted after this: a time, or how long ago, such as 2h", MOMENT),
        ("--tenant", "tenant", "of this tenant (for administrators)", None),
        ("--tag", "tag", "with this tag", None),
        ("--queue", "queue", "in this queue", None),
        ("--type", "type", "of this type", None),
    ):
        decorated = click.option(flag, name, help=text, type=kind, metavar="VALUE")(decorated)
    made: F = decorated
    return made


status_option = click.option("--status", type=click.Choice([status.value for status in Status]), help="in this state")


@click.group()
def jobs() -> None:
    r"""Look at jobs, follow them, cancel them, run them again, delete them.

    \b
      holdfast jobs list --status retrying
      holdfast jobs tail
      holdfast jobs cancel --queue mail --reason 'sent by hand'
    """


@jobs.command("list")
@status_option
@filter_options
@click.option("-n", "--limit", type=click.IntRange(0), default=20, show_default=True, help="so many; 0 is all")
@json_option
@way_options
def list_jobs(where: Any, limit: int, *, json: bool) -> None:
    r"""Jobs, newest first.

    \b
      holdfast jobs list
      holdfast jobs list --status retrying --queue mail --after 2h
      holdfast jobs list --tenant acme --limit 0 --json
    """

    async def look(client: AsyncClient) -> list[Job]:
        return await first(client.pages(calls.jobs(where, min(limit or 200, 200))), limit)

    found = asked(look)
    if json:
        print(as_json({"items": found}))
        return
    listing(found, COLUMNS, none="no jobs match")
    if limit and len(found) == limit:
        note(f"the newest {limit}: --limit shows more")


@jobs.command("show")
@click.argument("job_id", metavar="ID")
@json_option
@way_options
def show_job(job_id: str, *, json: bool) -> None:
    r"""One job with its attempts, steps, logs, payload and result.

    \b
      holdfast jobs show 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
    """
    job = asked(lambda client: client.get(job_id))
    if json:
        print(as_json(job))
    else:
        show.job(job)


@jobs.command("tail")
@click.argument("job_id", metavar="[ID]", required=False)
@click.option("--queue", metavar="VALUE", help="in this queue")
@click.option("--type", "type_", metavar="VALUE", help="of this type")
@click.option("--tenant", metavar="VALUE", help="of this tenant (for administrators)")
@json_option
@way_options
def tail_jobs(job_id: str | None, queue: str | None, type_: str | None, tenant: str | None, *, json: bool) -> int:
    r"""Follow what happens to jobs, as it happens; of one job, until it is finished.

    With an ID it ends with exit code 0 if the job succeeded, and 1 if it did not.

    \b
      holdfast jobs tail --queue mail
      holdfast jobs tail 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
      holdfast jobs tail --json | jq -r .data.id
    """
    given = {"job": job_id, "queue": queue, "type": type_, "tenant": tenant}
    of = {name: value for name, value in given.items() if value is not None}

    async def follow(client: AsyncClient) -> int:
        if job_id is not None:
            return await _follow_one(client, job_id, json=json)
        async for event in client.events(**of):
            _tell(event, json=json)
        return OK

    return asked(follow)


async def _follow_one(client: AsyncClient, job_id: str, *, json: bool) -> int:
    """Until it is finished: told by the stream, and looked at now and then, for it may end before the stream begins."""
    job = await client.get(job_id)
    told: asyncio.Queue[Event] = asyncio.Queue()

    async def listen() -> None:
        async for event in client.events(job=job_id):
            await told.put(event)

    listening = asyncio.create_task(listen())
    try:
        while not job.status.terminal:
            if listening.done():
                await listening
                return FAILED
            with suppress(TimeoutError):
                _tell(await asyncio.wait_for(told.get(), 1.0), json=json)
            job = await client.get(job_id)
        await asyncio.sleep(0)
        while not told.empty():
            _tell(told.get_nowait(), json=json)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    if json:
        print(msgspec.json.encode({"event": "finished", "data": job}).decode())
    else:
        show.outcome(job)
    return OK if job.status is Status.SUCCEEDED else FAILED


@jobs.command("cancel")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@status_option
@filter_options
@click.option("--reason", default="", help="why, for whoever looks at the jobs later")
@click.option("--all", "everything", is_flag=True, help="all there are, if nothing else says which")
@click.option("--dry-run", is_flag=True, help="only tell how many")
@click.option("--yes", is_flag=True, help="do not ask")
@json_option
@way_options
def cancel_jobs(
    ids: tuple[str, ...], where: Any, reason: str, *, everything: bool, dry_run: bool, yes: bool, json: bool
) -> int:
    r"""Cancel jobs, also those that run: by their ids, or all that match.

    \b
      holdfast jobs cancel 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11 --reason "wrong address"
      holdfast jobs cancel --queue mail --status scheduled --dry-run
    """
    which("cancel", ids, where, everything=everything)
    if ids:
        return on_each("cancel", ids, lambda each: calls.cancel(each, reason), yes=yes, json=json)
    return on_all(
        "cancel",
        lambda dry, cursor: calls.cancel_all(where, everything=everything, dry_run=dry, reason=reason, cursor=cursor),
        dry_run=dry_run,
        yes=yes,
        json=json,
    )


@jobs.command("retry")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@status_option
@filter_options
@click.option("--all", "everything", is_flag=True, help="all dead ones, if nothing else says which")
@click.option("--dry-run", is_flag=True, help="only tell how many")
@click.option("--yes", is_flag=True, help="do not ask")
@json_option
@way_options
def retry_jobs(ids: tuple[str, ...], where: Any, *, everything: bool, dry_run: bool, yes: bool, json: bool) -> int:
    r"""Have jobs run now: dead or cancelled ones anew, waiting ones ahead of their time.

    \b
      holdfast jobs retry 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
      holdfast jobs retry --status retrying --queue mail --dry-run
    """
    which("retry", ids, where, everything=everything)
    if ids:
        return on_each("retry", ids, calls.retry, yes=yes, json=json)
    return on_all(
        "retry",
        lambda dry, cursor: calls.retry_all(where, everything=everything, dry_run=dry, cursor=cursor),
        dry_run=dry_run,
        yes=yes,
        json=json,
    )


@jobs.command("delete")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="do not ask")
@json_option
@way_options
def delete_jobs(ids: tuple[str, ...], *, yes: bool, json: bool) -> int:
    r"""Delete jobs that do not run, with all that they recorded.

    \b
      holdfast jobs delete 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11 --yes
    """
    return on_each("delete", ids, calls.delete, yes=yes, json=json)


async def first(items: AsyncIterator[Any], limit: int) -> list[Any]:
    """The first of a list; with 0, all of it."""
    found = []
    async for item in items:
        found.append(item)
        if len(found) == limit:
            break
    return found


def _tell(event: Event, *, json: bool) -> None:
    data = event.data
    if json:
        print(msgspec.json.encode({"event": event.kind, "data": data, "id": event.id}).decode(), flush=True)
        return
    of = (data.get("queue", ""), data.get("tenant", ""))
    match event.kind:
        case "job":
            show.line(_clock(data["at"]), data["status"], data["type"], data["id"], of=of)
        case "jobs":
            for each in data["counts"]:
                many = (each["queue"], each["tenant"] or "several tenants")
                show.line("", each["status"], each["type"], f"{each['jobs']:,} jobs", of=many)
        case "worker":
            show.line(_clock(data["at"]), "worker", f"{data['event']} {data['name']}", data["worker"])
        case _:
            show.line("", "…", "some changes were missed", data.get("reason", ""))


def _clock(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
