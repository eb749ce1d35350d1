"""`holdfast submit`: submit a job, or many, and wait for what comes of it."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import click
import msgspec

from holdfast.cli import show
from holdfast.cli.bulk import bar
from holdfast.cli.exit_codes import FAILED, OK
from holdfast.cli.param_types import JSON, LATER
from holdfast.cli.render import as_json, json_option, note
from holdfast.cli.target import asked, way_options
from holdfast.errors import Invalid, JobCancelled, JobFailed
from holdfast.sdk import calls
from holdfast.sdk.async_client import AsyncClient
from holdfast.sdk.options import JobOptions, NewJob

AT_ONCE = 500
"""Lines that go out together: small enough for a bar that moves."""


@click.command()
@click.argument("type_", metavar="TYPE")
@click.argument("payload", type=JSON, required=False)
@click.option("--queue", metavar="NAME", help="the queue; 'default' if none is named")
@click.option("--tenant", metavar="NAME", help="whose job it is (for administrators)")
@click.option("--priority", type=int, help="higher is more urgent, within the tenant's turns")
@click.option("--delay", metavar="SPAN", help="run after this, such as 5m")
@click.option("--at", "scheduled_at", type=LATER, metavar="TIME", help="run at this time")
@click.option("--max-attempts", type=int, help="attempts before it is dead")
@click.option("--timeout", metavar="SPAN", help="how long an attempt may take")
@click.option("--deadline", type=LATER, metavar="TIME", help="not to be started later than this")
@click.option("--cost", type=int, help="what it weighs against the tenant's limits")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="may be given again")
@click.option("--concurrency-key", metavar="KEY", help="one limit for all jobs with this key")
@click.option("--idempotency-key", metavar="KEY", help="the same key is the same job; one is made otherwise")
@click.option(
    "--lines", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE", help="a payload in each line"
)
@click.option("--wait", is_flag=True, help="wait until it is finished, and print its result")
@click.option("--wait-for", metavar="SPAN", help="the same, but no longer than this")
@json_option
@way_options
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
    r"""Submit a job of TYPE with this JSON as its payload (text, @FILE, or - for standard input); prints its id.

    With --wait the exit code is 1 if the job does not succeed.

    \b
      holdfast submit welcome '{"user_id": 42}' --queue mail --delay 5m
      holdfast submit demo '{"sleep": 1, "result": "hello"}' --queue demo --wait
      holdfast submit import --lines rows.jsonl --queue imports --tenant acme
    """
    given: Any = {name: value for name, value in options.items() if value not in (None, ())}
    if lines is not None:
        if payload is not None or wait or wait_for or "idempotency_key" in given:
            raise click.UsageError("--lines goes with no PAYLOAD, no --wait and no --idempotency-key")
        return _submit_lines(type_, lines, given, tenant, json=json)
    return _submit_one(type_, payload, given, tenant, wait=wait or wait_for is not None, wait_for=wait_for, json=json)


def _submit_one(
    type_: str, payload: Any, options: JobOptions, tenant: str | None, *, wait: bool, wait_for: str | None, json: bool
) -> int:
    async def act(client: AsyncClient) -> int:
        job = await client.execute(calls.submit(type_, payload, options, tenant))
        if not wait:
            print(as_json(job) if json else job.id)
            return OK
        note(f"submitted {job.id}")
        with suppress(JobFailed, JobCancelled):
            await client.wait(job.id, wait_for)
        ended = await client.get(job.id)
        if json:
            print(as_json(ended))
        else:
            show.outcome(ended)
        return OK if ended.status.value == "succeeded" else FAILED

    return asked(act)


def _submit_lines(type_: str, file: Path, options: JobOptions, tenant: str | None, *, json: bool) -> int:
    with click.open_file(str(file), "rb") as stream:
        payloads = list(_payloads(stream))
    jobs: list[NewJob] = [{**options, "type": type_, "payload": each} for each in payloads]

    async def act(client: AsyncClient) -> list[str]:
        ids: list[str] = []
        with bar("submit", len(jobs)) as advance:
            for start in range(0, len(jobs), AT_ONCE):
                lot = jobs[start : start + AT_ONCE]
                try:
                    ids += [each.id for each in await client.execute(calls.submit_many(lot, tenant))]
                except Exception:
                    note(
                        f"holdfast: the first {start:,} lines were submitted, line {start + 1:,} and after it were not"
                    )
                    raise
                advance(len(lot))
        return ids

    ids = asked(act)
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
