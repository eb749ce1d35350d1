"""Printed view of a job, of its outcome, and of events."""

from typing import Any

import msgspec

from holdfast.cli.render import COLOURS, Column, console, fit_table, local, safe, span
from holdfast.model.state import Status
from holdfast.policy.tracebacks import fold_engine_frames
from holdfast.sdk.models import Attempt, JobDetail, Step

_MAX_JSON_CHARS = 4_000

_ATTEMPTS: list[Column[Attempt]] = [
    Column("attempt", lambda entry: f"{entry.generation}.{entry.attempt}" if entry.generation else str(entry.attempt)),
    Column("outcome", lambda entry: entry.outcome),
    Column("started", lambda entry: entry.started_at, drop_order=2),
    Column("took", lambda entry: span((entry.ended_at - entry.started_at).total_seconds())),
    Column("worker", lambda entry: entry.worker, drop_order=3),
    Column(
        "error", lambda entry: "" if entry.error is None else f"{entry.error.kind}: {entry.error.message}", text=True
    ),
]
_STEPS: list[Column[Step]] = [
    Column("step", lambda step: step.key, text=True),
    Column("state", lambda step: step.state),
    Column("recorded", lambda step: step.recorded_at, drop_order=1),
    Column("result", lambda step: "in a transaction" if step.transaction else _json(step.result), text=True),
]


def print_job(job: JobDetail) -> None:
    """Print a job with all its details."""
    from rich.text import Text

    out = console()
    head = Text(f"{safe(job.type)}  ", style="bold")
    head.append(job.status.value, style=COLOURS[job.status.value])
    head.append(f"  {job.id}", style="dim")
    out.print(head)
    for name, value in _facts(job):
        line = Text(f"  {name:<12}", style="dim")
        line.append(value, style="default")
        out.print(line, soft_wrap=False)
    for title, table in (
        ("attempts that failed or logged", fit_table(job.attempt_log, _ATTEMPTS, out.width)),
        ("steps", fit_table(job.steps, _STEPS, out.width)),
    ):
        if table is not None:
            out.print()
            out.print(title, style="bold")
            out.print(table)
    for attempt in job.attempt_log:
        for logged in attempt.logs.lines if attempt.logs else ():
            out.print(
                Text(f"  {attempt.attempt} {logged.at.astimezone():%H:%M:%S} {logged.level:<7} {safe(logged.message)}")
            )
    if traceback := _last_traceback(job):
        out.print("traceback of the last failure", style="bold")
        out.print(Text(traceback), soft_wrap=True)
    for title, value in (("payload", job.payload), ("result", job.result)):
        if value is not None:
            out.print(title, style="bold")
            out.print(Text(_indented(value)))
    if job.actions:
        out.print(Text(f"actions: {', '.join(f'holdfast jobs {action} {job.id}' for action in job.actions)}", "dim"))


def print_outcome(job: JobDetail) -> None:
    """Print the result of a finished job, or why it has none."""
    from rich.text import Text

    out = console()
    match job.status:
        case Status.SUCCEEDED:
            out.print(Text(_indented(job.result)))
        case Status.CANCELLED:
            out.print(Text(f"cancelled: {safe(job.reason or 'no reason given')}", COLOURS["cancelled"]))
        case _:
            error = "no error was recorded" if job.error is None else f"{job.error.kind}: {job.error.message}"
            if traceback := _last_traceback(job):
                out.print(Text(traceback), soft_wrap=True)
            out.print(Text(f"dead after {job.attempts} of {job.max_attempts} attempts: {safe(error)}", "red"))


def print_event(when: str, status: str, kind: str, detail: str, *, origin: tuple[str, str] | None = None) -> None:
    """Print one event of a stream; `origin` is its queue and tenant."""
    from rich.text import Text

    text = Text(f"{when:<8}  ", style="dim")
    text.append(f"{status:<9}  ", style=COLOURS.get(status, "default"))
    text.append(f"{safe(kind)}  ", style="default")
    if origin is not None:
        text.append(f"{safe(origin[0])} · {safe(origin[1])}  ", style="dim")
    text.append(detail, style="default")
    console().print(text, soft_wrap=True)


def _facts(job: JobDetail) -> list[tuple[str, str]]:
    progress = job.progress
    progress_text = None
    if progress is not None:
        percentage = "" if progress.fraction is None else f"{progress.fraction:.0%} "
        progress_text = f"{percentage}{progress.note or ''}".strip()
    facts: list[tuple[str, Any]] = [
        ("queue", f"{job.queue} (priority {job.priority}, cost {job.cost})"),
        ("tenant", job.tenant),
        ("attempts", f"{job.attempts} of {job.max_attempts}"),
        ("replayed", f"{job.generation} times" if job.generation else None),
        ("created", local(job.created_at)),
        ("due", local(job.scheduled_at) if job.scheduled_at else None),
        ("started", local(job.started_at) if job.started_at else None),
        ("finished", local(job.finished_at) if job.finished_at else None),
        ("deadline", local(job.deadline) if job.deadline else None),
        ("worker", job.worker),
        ("lease until", local(job.lease_until) if job.lease_until else None),
        ("progress", progress_text),
        ("timeout", None if job.timeout is None else span(job.timeout)),
        ("tags", ", ".join(job.tags) or None),
        ("key", job.idempotency_key),
        ("limited by", job.concurrency_key),
        ("reason", job.reason),
        ("error", None if job.error is None else f"{job.error.kind}: {job.error.message}"),
        ("fingerprint", None if job.error is None else job.error.fingerprint),
    ]
    return [(name, safe(str(value))) for name, value in facts if value is not None]


def _json(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


def _indented(value: Any) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    if len(text) > _MAX_JSON_CHARS:
        text = f"{text[:_MAX_JSON_CHARS]}\n… and {len(text) - _MAX_JSON_CHARS:,} more characters; see --json"
    # JSON escapes control characters; the other unprintable ones, such as direction marks, are replaced.
    return _printable_lines(text)


def _last_traceback(job: JobDetail) -> str:
    """Return the newest traceback with folded frames of holdfast, or an empty text."""
    for attempt in reversed(job.attempt_log):
        if attempt.error is not None and attempt.error.traceback:
            return _printable_lines(fold_engine_frames(attempt.error.traceback).rstrip())
    return ""


def _printable_lines(text: str) -> str:
    """Return untrusted text of several lines with unprintable characters replaced."""
    return "\n".join("".join(char if char.isprintable() else "\ufffd" for char in row) for row in text.split("\n"))
