"""One job, as people look at it."""

from typing import Any

import msgspec

from holdfast.cli.render import COLOURS, Column, console, fitted, local, safe, span
from holdfast.model.state import Status
from holdfast.sdk.models import Attempt, Job, JobDetail, Step

_LONGEST = 4_000

_ATTEMPTS: list[Column[Attempt]] = [
    Column("attempt", lambda each: f"{each.generation}.{each.attempt}" if each.generation else str(each.attempt)),
    Column("outcome", lambda each: each.outcome),
    Column("started", lambda each: each.started_at, spare=2),
    Column("took", lambda each: span((each.ended_at - each.started_at).total_seconds())),
    Column("worker", lambda each: each.worker, spare=3),
    Column("error", lambda each: "" if each.error is None else f"{each.error.kind}: {each.error.message}", text=True),
]
_STEPS: list[Column[Step]] = [
    Column("step", lambda each: each.key, text=True),
    Column("state", lambda each: each.state),
    Column("recorded", lambda each: each.recorded_at, spare=1),
    Column("result", lambda each: "in a transaction" if each.transaction else _json(each.result), text=True),
]


def job(found: JobDetail) -> None:
    """All that is known of it."""
    from rich.text import Text

    out = console()
    head = Text(f"{safe(found.type)}  ", style="bold")
    head.append(found.status.value, style=COLOURS[found.status.value])
    head.append(f"  {found.id}", style="dim")
    out.print(head)
    for name, value in _facts(found):
        line = Text(f"  {name:<12}", style="dim")
        line.append(value, style="default")
        out.print(line, soft_wrap=False)
    for title, drawn in (
        ("attempts that failed or logged", fitted(found.attempt_log, _ATTEMPTS, out.width)),
        ("steps", fitted(found.steps, _STEPS, out.width)),
    ):
        if drawn is not None:
            out.print()
            out.print(title, style="bold")
            out.print(drawn)
    for attempt in found.attempt_log:
        for logged in attempt.logs.lines if attempt.logs else ():
            out.print(
                Text(f"  {attempt.attempt} {logged.at.astimezone():%H:%M:%S} {logged.level:<7} {safe(logged.message)}")
            )
    for title, value in (("payload", found.payload), ("result", found.result)):
        if value is not None:
            out.print(title, style="bold")
            out.print(Text(_indented(value)))
    if found.actions:
        out.print(Text(f"may be: {', '.join(f'holdfast jobs {each} {found.id}' for each in found.actions)}", "dim"))


def outcome(found: Job) -> None:
    """What came of a finished job, in short."""
    from rich.text import Text

    out = console()
    match found.status:
        case Status.SUCCEEDED:
            out.print(Text(_indented(found.result)))
        case Status.CANCELLED:
            out.print(Text(f"cancelled: {safe(found.reason or 'no reason was given')}", COLOURS["cancelled"]))
        case _:
            error = "nothing was recorded" if found.error is None else f"{found.error.kind}: {found.error.message}"
            out.print(Text(f"dead after {found.attempts} of {found.max_attempts} attempts: {safe(error)}", "red"))


def line(when: str, status: str, kind: str, what: str, *, of: tuple[str, str] | None = None) -> None:
    """One line of a stream."""
    from rich.text import Text

    text = Text(f"{when:<8}  ", style="dim")
    text.append(f"{status:<9}  ", style=COLOURS.get(status, "default"))
    text.append(f"{safe(kind)}  ", style="default")
    if of is not None:
        text.append(f"{safe(of[0])} · {safe(of[1])}  ", style="dim")
    text.append(what, style="default")
    console().print(text, soft_wrap=True)


def _facts(found: JobDetail) -> list[tuple[str, str]]:
    progress = found.progress
    far = None
    if progress is not None:
        share = "" if progress.fraction is None else f"{progress.fraction:.0%} "
        far = f"{share}{progress.note or ''}".strip()
    facts: list[tuple[str, Any]] = [
        ("queue", f"{found.queue} (priority {found.priority}, cost {found.cost})"),
        ("tenant", found.tenant),
        ("attempts", f"{found.attempts} of {found.max_attempts}"),
        ("replayed", f"{found.generation} times" if found.generation else None),
        ("created", local(found.created_at)),
        ("due", local(found.scheduled_at) if found.scheduled_at else None),
        ("started", local(found.started_at) if found.started_at else None),
        ("finished", local(found.finished_at) if found.finished_at else None),
        ("deadline", local(found.deadline) if found.deadline else None),
        ("worker", found.worker),
        ("lease until", local(found.lease_until) if found.lease_until else None),
        ("progress", far),
        ("timeout", None if found.timeout is None else span(found.timeout)),
        ("tags", ", ".join(found.tags) or None),
        ("key", found.idempotency_key),
        ("limited by", found.concurrency_key),
        ("reason", found.reason),
        ("error", None if found.error is None else f"{found.error.kind}: {found.error.message}"),
        ("fingerprint", None if found.error is None else found.error.fingerprint),
    ]
    return [(name, safe(str(value))) for name, value in facts if value is not None]


def _json(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


def _indented(value: Any) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n… and {len(text) - _LONGEST:,} more characters: --json shows all"
    # JSON escapes control characters; what is left to be feared are those that only look like others.
    return "\n".join("".join(each if each.isprintable() else "\ufffd" for each in row) for row in text.split("\n"))
