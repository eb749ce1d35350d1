"""Types and codec of one job with its attempts and steps, whose lists end by size."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from holdfast.model.decoded_job import Action
from holdfast.model.job import Job
from holdfast.model.step import Step, StepState
from holdfast.model.time import Instant, rfc3339
from holdfast.wire.codec import NULL, decode_cursor, invalid_cursor, job_out
from holdfast.wire.name_cursors import name_cursor, read_name_cursor
from holdfast.wire.types import AttemptOut, Cursor, JobOut, LineageOut, Query, StepCursor, StepOut

MAX_ATTEMPT_LOG_BYTES = 512 * 1024
"""Size at which a list of attempts ends; it has at least one."""

_ATTEMPTS = msgspec.json.Decoder(list[AttemptOut])
_RAW_ATTEMPTS = msgspec.json.Decoder(list[Raw])


TruncatedField = Literal["attempt_log", "steps"]


class TruncatedOut(Struct, frozen=True):
    """List of which a job shows only a part, because the response would be too large."""

    field: TruncatedField
    """Field of the job that has the list."""
    path: str
    """Path of the whole list, which is paged."""
    next_cursor: str
    """Cursor of the first page that the job does not show."""


class JobDetail(JobOut, frozen=True):
    """A job with its attempts, steps and lineage."""

    attempt_log: list[AttemptOut]
    """Attempts, oldest first; only the newest if `truncated` says so."""
    steps: list[StepOut]
    """Recorded steps, oldest first; only some if `truncated` says so."""
    lineage: LineageOut
    """Origin of the job."""
    truncated: list[TruncatedOut]
    """Lists that are not complete, with the path of the rest; usually empty."""


class AttemptQuery(Query):
    """Page of the attempts of a job."""

    cursor: Cursor | None = None


class AttemptPage(Struct, frozen=True):
    """Page of the attempts of a job that did not succeed or logged something, newest first."""

    items: list[AttemptOut]
    next_cursor: str | None


class StepQuery(Query):
    """Page of the steps of a job."""

    cursor: StepCursor | None = None


class StepPage(Struct, frozen=True):
    """Page of the recorded steps of a job, by key."""

    items: list[StepOut]
    next_cursor: str | None


def job_detail(
    job: Job, *, actions: list[Action], steps: list[Step], more_steps: bool, lease_until: Instant | None = None
) -> JobDetail:
    """Render a job with its attempts, steps and lineage. `steps` is the first page of its steps."""
    fields = job_out(job, actions=actions, lease_until=lease_until)
    attempts = attempt_page(job, None)
    path, truncated = f"/v1/jobs/{job.id}", []
    if attempts.next_cursor is not None:
        truncated.append(TruncatedOut("attempt_log", f"{path}/attempts", attempts.next_cursor))
    if more_steps:
        truncated.append(TruncatedOut("steps", f"{path}/steps", step_cursor(steps[-1].key)))
    return JobDetail(
        **{name: getattr(fields, name) for name in fields.__struct_fields__},
        attempt_log=attempts.items[::-1],
        steps=steps_out(sorted(steps, key=lambda step: (step.recorded_at, step.key))),
        lineage=LineageOut(job.generation),
        truncated=truncated,
    )


def attempt_page(job: Job, cursor: str | None) -> AttemptPage:
    """Render a page of the attempts of a job, newest first. Raises `Invalid`.

    The cursor is the number of older attempts, so that new attempts do not change it.
    """
    raw = _RAW_ATTEMPTS.decode(job.attempt_log) if job.attempt_log else []
    end = len(raw) if cursor is None else min(_read_position(cursor), len(raw))
    start, size = end, 0
    while start > 0:
        size += len(memoryview(raw[start - 1]))
        if start < end and size > MAX_ATTEMPT_LOG_BYTES:
            break
        start -= 1
    shown = _ATTEMPTS.decode(b"[" + b",".join(raw[start:end]) + b"]")
    return AttemptPage(shown[::-1], name_cursor(str(start)) if start else None)


def step_page(steps: list[Step], *, more: bool) -> StepPage:
    """Render a page of steps."""
    return StepPage(steps_out(steps), step_cursor(steps[-1].key) if more else None)


def steps_out(steps: Iterable[Step]) -> list[StepOut]:
    """Render steps."""
    return [
        StepOut(
            step.key,
            "done" if step.state is StepState.DONE else "started",
            rfc3339(step.recorded_at),
            NULL if step.result is None or step.is_transaction else Raw(step.result),
            step.is_transaction,
        )
        for step in steps
    ]


def step_cursor(last: str) -> str:
    """Return the cursor after this step."""
    return urlsafe_b64encode(last.encode()).decode().rstrip("=")


def read_step_cursor(text: str | None) -> str:
    """Parse the cursor of a list of steps; empty for its start. Raises `Invalid`."""
    if text is None:
        return ""
    try:
        key = decode_cursor(text).decode()
    except ValueError:
        raise invalid_cursor() from None
    if not key.isprintable():
        raise invalid_cursor()
    return key


def _read_position(cursor: str) -> int:
    text = read_name_cursor(cursor)
    if not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise invalid_cursor()
    return int(text)


_MAX_DIGITS = 9
