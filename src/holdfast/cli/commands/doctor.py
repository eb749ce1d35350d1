"""`holdfast doctor`: find problems, and print the command that fixes each."""

import shlex
import stat
import tomllib
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from holdfast.cli.checks.findings import Finding, JobsSnapshot, check_jobs
from holdfast.cli.event_loop import run
from holdfast.cli.exit_codes import FAILED, OK
from holdfast.cli.options import current_settings
from holdfast.cli.render import as_json, console, json_option, note
from holdfast.cli.state_dir import ADMIN_KEY, FOLDER, JWT_SECRET
from holdfast.cli.target import CommandTarget, local_up, open_client, resolve_target, target_options
from holdfast.config import SETTINGS, Settings, shown_url
from holdfast.errors import Forbidden, Misconfigured, SchemaMismatch, Unauthorized, Unavailable
from holdfast.sdk import calls

if TYPE_CHECKING:
    from holdfast.sdk.async_client import AsyncClient
    from holdfast.sdk.models import Job

_MARKS = {"ok": ("ok", "green"), "doubtful": ("?", "yellow"), "wrong": ("WRONG", "red")}
_MAX_PAIRS = 50
"""Maximum number of pairs of queue and job type to check."""


@click.command()
@click.option("--patience", default=30.0, show_default=True, type=click.FloatRange(0), metavar="SECONDS",
              help="how long a job may wait before it is reported")  # fmt: skip
@click.option("--strict", is_flag=True, help="exit code 1 for doubtful findings too")
@click.option("--sweep", is_flag=True, help="first release jobs of lost workers and make due jobs ready, once")
@json_option
@target_options
def doctor(patience: float, *, strict: bool, sweep: bool, json: bool) -> int:
    r"""Find problems, and print the command that fixes each. Exit code 1 if there are any.

    Checks jobs, queues and workers; on a database also connection, schema, indexes, durability, clock and pooler.

    \b
      holdfast doctor
      holdfast doctor --url postgresql://localhost/jobs --strict
      holdfast doctor --json | jq '.findings[] | select(.level == "wrong")'
    """
    settings = current_settings()
    findings = [_runnable(finding, settings) for finding in run(_examine(settings, patience, sweep=sweep))]
    if json:
        print(as_json({"findings": findings}))
    else:
        _print(findings)
    levels = {finding.level for finding in findings}
    return FAILED if "wrong" in levels or (strict and "doubtful" in levels) else OK


async def _examine(settings: Settings, patience: float, *, sweep: bool) -> list[Finding]:
    from holdfast.cli.checks.database import check_database

    findings = list(check_files(settings))
    target = resolve_target(settings)
    if not target.is_service and not _only_local_up(settings, target):
        if sweep:
            note(await _sweep(settings))
        findings += [finding async for finding in check_database(settings, patience=patience)]
        if any(finding.check in ("database", "schema") and finding.level == "wrong" for finding in findings):
            return findings
    elif sweep:
        raise click.UsageError("--sweep needs a database: name it with --url")
    return findings + await _check_service(settings, patience)


def _runnable(finding: Finding, settings: Settings) -> Finding:
    """Add the flags of this command's target to the fix; the reader fills in a password."""
    if finding.fix is None or not finding.fix.startswith("holdfast "):
        return finding
    flags = ""
    if settings.sources.get("database_url", "").startswith("--"):
        flags = f" --database-url {shlex.quote(shown_url(settings.database_url))}"
    elif settings.sources.get("api_url", "").startswith("--") and not finding.fix.startswith("holdfast work"):
        flags = f" --api {shlex.quote(shown_url(settings.api_url or ''))} --key KEY"
    return replace(finding, fix=finding.fix + flags)


def _only_local_up(settings: Settings, target: CommandTarget) -> bool:
    """Return whether there is no database file, but a `holdfast up` in this folder."""
    from holdfast.store.console import is_new_file

    return target.source == "the default" and is_new_file(settings.database_url) and local_up() is not None


async def _check_service(settings: Settings, patience: float) -> list[Finding]:
    try:
        async with open_client(settings) as client:
            return list(check_jobs(await _take_snapshot(client), patience=patience))
    except (Unauthorized, Forbidden) as error:
        create_key = "holdfast keys create doctor --scope admin --scope read --url DATABASE"
        return [Finding("key", "wrong", str(error), create_key)]
    except (Unavailable, Misconfigured) as error:
        fix = None if isinstance(error, SchemaMismatch) else "holdfast serve"
        return [Finding("service", "wrong", str(error), fix)]


async def _take_snapshot(client: "AsyncClient") -> JobsSnapshot:
    """Fetch what the checks need, in few requests."""
    stats = await client.stats()
    waiting: list[Job] = []
    ready_queues, ready_types = (
        [counts.name for counts in group if counts.statuses.ready] for group in (stats.queues, stats.types)
    )
    for queue, job_type in islice(product(ready_queues, ready_types), _MAX_PAIRS):
        page = await client.execute(calls.jobs({"queue": queue, "type": job_type, "status": "ready"}, 1).at(None))
        waiting += page.items
    types = await client.execute(calls.type_stats({"window": "1h"}))
    running = await client.execute(calls.jobs({"status": "running"}).at(None))
    return JobsSnapshot(
        await client.queues(),
        await client.workers(),
        waiting,
        {stats.type: stats.totals.started for stats in types},
        running.items,
        stats.as_of.timestamp(),
    )


async def _sweep(settings: Settings) -> str:
    from holdfast.cli.exit_codes import startup_errors
    from holdfast.compose import open_engine

    with startup_errors(settings):
        engine = await open_engine(settings)
    try:
        released, made_ready = await engine.run_maintenance_once()
    finally:
        await engine.aclose()
    return f"released {released:,} jobs of lost workers, made {made_ready:,} due jobs ready"


def check_files(settings: Settings) -> Iterator[Finding]:
    """Check that other users of this machine cannot read secrets."""
    secret_files = [Path(FOLDER) / ADMIN_KEY, Path(FOLDER) / JWT_SECRET]
    config = Path("holdfast.toml")
    if _has_secret(config):
        secret_files.append(config)
    if settings.database_url.startswith("sqlite:///"):
        secret_files.append(Path(settings.database_url.removeprefix("sqlite:///")))
    open_to_others = [path for path in secret_files if _is_open_to_others(path)]
    for path in open_to_others:
        yield Finding("secrets", "wrong", f"other users of this machine can read {path}", f"chmod 600 {path}")
    if not open_to_others:
        yield Finding("secrets", "ok", "no other user can read keys, passwords or the database file")


def _is_open_to_others(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def _has_secret(config: Path) -> bool:
    try:
        table = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    secret = {setting.key for setting in SETTINGS if setting.secret}
    return any(key in secret or (isinstance(value, str) and "@" in value) for key, value in table.items())


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        mark, colour = _MARKS[finding.level]
        table.add_row(Text(mark, colour), Text(finding.check, "bold"), Text(finding.text))
        if finding.fix is not None and finding.level != "ok":
            table.add_row("", Text("fix", "dim"), Text(finding.fix, "cyan"))
    out.print(table)
    wrong = sum(finding.level == "wrong" for finding in findings)
    doubtful = sum(finding.level == "doubtful" for finding in findings)
    out.print(Text(f"{wrong} wrong, {doubtful} doubtful" if wrong or doubtful else "no problems found", "bold"))
