"""`holdfast jobs`: list, show, follow, cancel, retry and delete jobs."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar

import click
import msgspec

from holdfast import tasks
from holdfast.cli import show
from holdfast.cli.bulk import apply_to_ids, apply_to_matching, require_selection
from holdfast.cli.exit_codes import FAILED, OK
from holdfast.cli.job_ids import resolve_job_id
from holdfast.cli.param_types import PAST_TIME
from holdfast.cli.render import Column, as_json, json_option, note, print_list
from holdfast.cli.target import run_with_client, target_options
from holdfast.model.state import Status
from holdfast.sdk import calls
from holdfast.sdk.async_client import AsyncClient
from holdfast.sdk.models import Error, Event, Job, JobDetail

F = TypeVar("F", bound=Callable[..., Any])


def error_text(error: Error | None) -> str:
    """Format an error in one line."""
    return "" if error is None else f"{error.kind}: {error.message}"


COLUMNS: list[Column[Job]] = [
    Column("id", lambda job: job.id),
    Column("status", lambda job: job.status.value),
    Column("type", lambda job: job.type, text=True),
    Column("queue", lambda job: job.queue, drop_order=3, text=True),
    Column("tenant", lambda job: job.tenant, drop_order=4, text=True),
    Column("tries", lambda job: f"{job.attempts}/{job.max_attempts}", drop_order=2),
    Column("created", lambda job: job.created_at, drop_order=1),
    Column("error", lambda job: error_text(job.error), 5, text=True),
]


def filter_options(command: F) -> F:
    """Give a command the flags of a job filter, passed to it as `where`."""
    names = ("type", "queue", "tag", "tenant", "created_after", "created_before", "error")

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = {name: kwargs.pop(name) for name in (*names, "status") if name in kwargs}
        return command(*args, where={name: value for name, value in given.items() if value is not None}, **kwargs)

    decorated: Any = run
    for flag, name, text, kind in (
        ("--error", "error", "last error has this fingerprint (see 'holdfast dead groups')", None),
        ("--before", "created_before", "submitted before this time, or this long ago, such as 2h", PAST_TIME),
        ("--after", "created_after", "submitted after this time, or this long ago, such as 2h", PAST_TIME),
        ("--tenant", "tenant", "of this tenant (for administrators)", None),
        ("--tag", "tag", "with this tag", None),
        ("--queue", "queue", "in this queue", None),
        ("--type", "type", "of this type", None),
    ):
        decorated = click.option(flag, name, help=text, type=kind, metavar="VALUE")(decorated)
    with_options: F = decorated
    return with_options


status_option = click.option("--status", type=click.Choice([status.value for status in Status]), help="in this state")


@click.group()
def jobs() -> None:
    r"""List, show, follow, cancel, retry and delete jobs.

    An ID may be shortened to its first digits, at least 8, if no other job's id begins with them.

    \b
      holdfast jobs list --status retrying
      holdfast jobs tail
      holdfast jobs cancel --queue mail --reason 'sent by hand'
    """


@jobs.command("list")
@status_option
@filter_options
@click.option("-n", "--limit", type=click.IntRange(0), default=20, show_default=True, help="number of jobs; 0 for all")
@json_option
@target_options
def list_jobs(where: Any, limit: int, *, json: bool) -> None:
    r"""List jobs, newest first.

    \b
      holdfast jobs list
      holdfast jobs list --status retrying --queue mail --after 2h
      holdfast jobs list --tenant acme --limit 0 --json
    """

    async def fetch(client: AsyncClient) -> list[Job]:
        return await take(client.pages(calls.jobs(where, min(limit or 200, 200))), limit)

    listed = run_with_client(fetch)
    if json:
        print(as_json({"items": listed}))
        return
    print_list(listed, COLUMNS, none="no jobs match")
    if limit and len(listed) == limit:
        note(f"showing the newest {limit}; use --limit for more")


@jobs.command("show")
@click.argument("job_id", metavar="ID")
@json_option
@target_options
def show_job(job_id: str, *, json: bool) -> None:
    r"""Show a job with its attempts, steps, logs, payload and result.

    \b
      holdfast jobs show 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
      holdfast jobs show 01981f5e-8c5a-7b6
    """

    async def fetch(client: AsyncClient) -> JobDetail:
        job = await client.get(await resolve_job_id(client, job_id))
        return job if not job.truncated else await _with_whole_lists(client, job)

    job = run_with_client(fetch)
    if json:
        print(as_json(job))
    else:
        show.print_job(job)


async def _with_whole_lists(client: AsyncClient, job: JobDetail) -> JobDetail:
    """Return a job with all its attempts and steps, which one response cannot hold."""
    attempts = [attempt async for attempt in client.attempts(job.id)]
    steps = [step async for step in client.steps(job.id)]
    steps.sort(key=lambda step: (step.recorded_at, step.key))
    return msgspec.structs.replace(job, attempt_log=attempts[::-1], steps=steps, truncated=[])


@jobs.command("tail")
@click.argument("job_id", metavar="[ID]", required=False)
@click.option("--queue", metavar="VALUE", help="in this queue")
@click.option("--type", "type_", metavar="VALUE", help="of this type")
@click.option("--tenant", metavar="VALUE", help="of this tenant (for administrators)")
@json_option
@target_options
def tail_jobs(job_id: str | None, queue: str | None, type_: str | None, tenant: str | None, *, json: bool) -> int:
    r"""Follow the events of jobs; with an ID, follow one job until it has finished.

    With an ID, the exit code is 0 if the job succeeded, and 1 if it did not.

    \b
      holdfast jobs tail --queue mail
      holdfast jobs tail 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
      holdfast jobs tail --json | jq -r .data.id
    """
    given = {"queue": queue, "type": type_, "tenant": tenant}
    filters = {name: value for name, value in given.items() if value is not None}

    async def follow(client: AsyncClient) -> int:
        if job_id is not None:
            return await _follow_one(client, await resolve_job_id(client, job_id), json=json)
        async for event in client.events(**filters):
            _print_event(event, json=json)
        return OK

    return run_with_client(follow)


async def _follow_one(client: AsyncClient, job_id: str, *, json: bool) -> int:
    """Print the events of a job until it has finished.

    Also polls the job, because it may finish before the stream is connected.
    """
    job = await client.get(job_id)
    events: asyncio.Queue[Event] = asyncio.Queue()

    async def listen() -> None:
        async for event in client.events(job=job_id):
            await events.put(event)

    listener = tasks.start(listen(), name="holdfast job events", awaited=True)
    try:
        while not job.status.terminal:
            if listener.done():
                await listener
                return FAILED
            with suppress(TimeoutError):
                _print_event(await asyncio.wait_for(events.get(), 1.0), json=json)
            job = await client.get(job_id)
        await asyncio.sleep(0)
        while not events.empty():
            _print_event(events.get_nowait(), json=json)
    finally:
        await tasks.stop(listener)
    if json:
        print(msgspec.json.encode({"event": "finished", "data": job}).decode())
    else:
        show.print_outcome(job)
    return OK if job.status is Status.SUCCEEDED else FAILED


@jobs.command("cancel")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@status_option
@filter_options
@click.option("--reason", default="", help="reason, shown with the jobs")
@click.option("--all", "everything", is_flag=True, help="select all jobs, if no filter is given")
@click.option("--dry-run", is_flag=True, help="only print how many")
@click.option("--yes", is_flag=True, help="do not ask for confirmation")
@json_option
@target_options
def cancel_jobs(
    ids: tuple[str, ...], where: Any, reason: str, *, everything: bool, dry_run: bool, yes: bool, json: bool
) -> int:
    r"""Cancel jobs, including running ones, by id or by filter.

    \b
      holdfast jobs cancel 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11 --reason "wrong address"
      holdfast jobs cancel --queue mail --status scheduled --dry-run
    """
    require_selection("cancel", ids, where, everything=everything)
    if ids:
        return apply_to_ids("cancel", ids, lambda job_id: calls.cancel(job_id, reason), yes=yes, json=json)
    return apply_to_matching(
        "cancel",
        lambda page: calls.cancel_all(
            where, everything=everything, dry_run=page.dry_run, reason=reason, cursor=page.cursor
        ),
        dry_run=dry_run,
        yes=yes,
        json=json,
    )


@jobs.command("retry")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@status_option
@filter_options
@click.option("--all", "everything", is_flag=True, help="select all dead jobs, if no filter is given")
@click.option("--dry-run", is_flag=True, help="only print how many")
@click.option("--yes", is_flag=True, help="do not ask for confirmation")
@json_option
@target_options
def retry_jobs(ids: tuple[str, ...], where: Any, *, everything: bool, dry_run: bool, yes: bool, json: bool) -> int:
    r"""Run jobs now: dead and cancelled ones again, waiting ones ahead of their time.

    \b
      holdfast jobs retry 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
      holdfast jobs retry --status retrying --queue mail --dry-run
    """
    require_selection("retry", ids, where, everything=everything)
    if ids:
        return apply_to_ids("retry", ids, calls.retry, yes=yes, json=json)
    return apply_to_matching(
        "retry",
        lambda page: calls.retry_all(where, everything=everything, dry_run=page.dry_run, cursor=page.cursor),
        dry_run=dry_run,
        yes=yes,
        json=json,
    )


@jobs.command("delete")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="do not ask for confirmation")
@json_option
@target_options
def delete_jobs(ids: tuple[str, ...], *, yes: bool, json: bool) -> int:
    r"""Delete jobs that are not running, with their history.

    \b
      holdfast jobs delete 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11 --yes
    """
    return apply_to_ids("delete", ids, calls.delete, yes=yes, json=json)


async def take(items: AsyncIterator[Any], limit: int) -> list[Any]:
    """Return the first `limit` items; all of them if it is 0."""
    taken = []
    async for item in items:
        taken.append(item)
        if len(taken) == limit:
            break
    return taken


def _print_event(event: Event, *, json: bool) -> None:
    data = event.data
    if json:
        print(msgspec.json.encode({"event": event.kind, "data": data, "id": event.id}).decode(), flush=True)
        return
    origin = (data.get("queue", ""), data.get("tenant", ""))
    match event.kind:
        case "job":
            show.print_event(_clock(data["at"]), data["status"], data["type"], data["id"], origin=origin)
        case "jobs":
            for count in data["counts"]:
                origin = (count["queue"], count["tenant"] or "several tenants")
                show.print_event("", count["status"], count["type"], f"{count['jobs']:,} jobs", origin=origin)
        case "worker":
            show.print_event(_clock(data["at"]), "worker", f"{data['event']} {data['name']}", data["worker"])
        case _:
            show.print_event("", "…", "some events were missed", data.get("reason", ""))


def _clock(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone():%H:%M:%S}"
