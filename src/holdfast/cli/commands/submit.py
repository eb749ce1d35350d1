"""`holdfast submit`: submit one job or many, and wait for the result."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from holdfast.cli import show
from holdfast.cli.bulk import bar
from holdfast.cli.exit_codes import FAILED, OK
from holdfast.cli.param_types import FUTURE_TIME, JSON, RETRY
from holdfast.cli.render import as_json, json_option, note
from holdfast.cli.target import run_with_client, target_options
from holdfast.errors import Invalid, JobCancelled, JobFailed, ResultTooLarge
from holdfast.sdk import calls
from holdfast.sdk.async_client import AsyncClient
from holdfast.sdk.options import JobOptions, NewJob

BATCH_SIZE = 500
"""Jobs per request; small enough for a progress bar that moves."""


@click.command()
@click.argument("type_", metavar="TYPE")
@click.argument("payload", type=JSON, required=False)
@click.option("--queue", metavar="NAME", help="queue; default: 'default'")
@click.option("--tenant", metavar="NAME", help="tenant of the job (for administrators)")
@click.option("--priority", type=int, help="higher runs first, among the jobs of the tenant")
@click.option("--delay", metavar="SPAN", help="run after this delay, such as 5m")
@click.option("--at", "scheduled_at", type=FUTURE_TIME, metavar="TIME", help="run at this time")
@click.option("--max-attempts", type=int, help="attempts before it is dead")
@click.option("--timeout", metavar="SPAN", help="maximum time of an attempt")
@click.option("--deadline", type=FUTURE_TIME, metavar="TIME", help="do not start the job after this time")
@click.option("--cost", type=int, help="cost against the quota of the tenant")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="tag; may be repeated")
@click.option("--concurrency-key", metavar="KEY", help="jobs with this key share a concurrency limit")
@click.option("--idempotency-key", metavar="KEY", help="submissions with the same key create one job; default: random")
@click.option("--retry", type=RETRY, metavar="SPANS", help="delays between attempts: 10s,1m,1h or base=2s,cap=5m")
@click.option("--unique", metavar="FIELDS", help="add no second job with equal fields, such as type,payload.user_id")
@click.option("--unique-within", metavar="SPAN", help="with --unique: also for this long after the job was added")
@click.option(
    "--on-conflict",
    type=click.Choice(["return", "replace", "reject"]),
    help="with --unique: what to do if the job exists; default: return",
)
@click.option(
    "--lines",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="file with one JSON payload per line",
)
@click.option("--wait", is_flag=True, help="wait until the job has finished, and print its result")
@click.option("--wait-for", metavar="SPAN", help="wait at most this long")
@json_option
@target_options
def submit(
    type_: str,
    payload: Any,
    lines: Path | None,
    tenant: str | None,
    wait_for: str | None,
    *,
    wait: bool,
    json: bool,
    **options: Any,
) -> int:
    r"""Submit a job of TYPE with a JSON payload, and print its id.

    PAYLOAD is JSON text, @FILE, or - for standard input. With --wait the exit code is 1 if the job does not succeed.

    \b
      holdfast submit welcome '{"user_id": 42}' --queue mail --delay 5m
      holdfast submit demo '{"sleep": 1, "result": "hello"}' --queue demo --wait
      holdfast submit report '{"user_id": 42}' --unique type,payload.user_id --retry 10s,1m,10m
      holdfast submit import --lines rows.jsonl --queue imports --tenant acme
    """
    given: Any = _with_unique({name: value for name, value in options.items() if value not in (None, ())})
    if lines is not None:
        if payload is not None or wait or wait_for or "idempotency_key" in given:
            raise click.UsageError("--lines cannot be combined with PAYLOAD, --wait or --idempotency-key")
        return _submit_lines(type_, lines, given, tenant, json=json)
    return _submit_one(type_, payload, given, tenant, wait=wait or wait_for is not None, wait_for=wait_for, json=json)


def _with_unique(options: dict[str, Any]) -> dict[str, Any]:
    """Replace the flags of uniqueness by the option `unique`."""
    by, within, conflict = (options.pop(name, None) for name in ("unique", "unique_within", "on_conflict"))
    if by is None:
        if within or conflict:
            raise click.UsageError("--unique-within and --on-conflict need --unique")
        return options
    fields = {"by": [part.strip() for part in by.split(",")], "within": within, "on_conflict": conflict}
    return {**options, "unique": {name: value for name, value in fields.items() if value is not None}}


def _submit_one(
    type_: str, payload: Any, options: JobOptions, tenant: str | None, *, wait: bool, wait_for: str | None, json: bool
) -> int:
    async def act(client: AsyncClient) -> int:
        job = await client.execute(calls.submit(type_, payload, options, tenant))
        if not wait:
            print(as_json(job) if json else job.id)
            return OK
        note(f"submitted {job.id}")
        await _warn_without_worker(client, job.id)
        with suppress(JobFailed, JobCancelled, ResultTooLarge):
            await client.wait(job.id, wait_for)
        finished = await client.get(job.id)
        if json:
            print(as_json(finished))
        else:
            show.print_outcome(finished)
        return OK if finished.status.value == "succeeded" else FAILED

    return run_with_client(act)


async def _warn_without_worker(client: AsyncClient, job_id: str) -> None:
    """Say that the wait may be long if no live worker handles the job."""
    for reason in (await client.explain(job_id)).reasons:
        if reason.code == "no_worker":
            note(f"holdfast: {reason.detail}: start a worker with 'holdfast work', or check TYPE and --queue")


def _submit_lines(type_: str, file: Path, options: JobOptions, tenant: str | None, *, json: bool) -> int:
    with click.open_file(str(file), "rb") as stream:
        payloads = list(_payloads(stream))
    jobs: list[NewJob] = [{**options, "type": type_, "payload": payload} for payload in payloads]

    async def act(client: AsyncClient) -> list[str]:
        ids: list[str] = []
        with bar("submit", len(jobs)) as advance:
            for start in range(0, len(jobs), BATCH_SIZE):
                batch = jobs[start : start + BATCH_SIZE]
                try:
                    ids += [receipt.id for receipt in await client.execute(calls.submit_many(batch, tenant))]
                except Exception:
                    note(f"holdfast: the first {start:,} jobs were submitted, the others were not")
                    raise
                advance(len(batch))
        return ids

    ids = run_with_client(act)
    if json:
        print(as_json({"submitted": len(ids), "ids": ids}))
    else:
        print(f"submitted {len(ids):,} jobs")
    return OK


def _payloads(stream: IO[bytes]) -> Iterable[Any]:
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Invalid(f"line {number:,} is not JSON ({error}): nothing was submitted") from None
