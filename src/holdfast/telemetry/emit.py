"""Sink that writes events to the log."""

import logging
from collections.abc import Callable
from typing import NamedTuple, assert_never

import msgspec

from holdfast.telemetry.events import (
    AttemptFinished,
    BreakerChanged,
    DatabaseChanged,
    Event,
    JobsReaped,
    LoopFailed,
    RedisChanged,
)
from holdfast.telemetry.logs import ATTEMPTS

Emit = Callable[[Event], None]

_LOG = logging.getLogger("holdfast")
_ATTEMPT_LOG = logging.getLogger(ATTEMPTS)

_FAILURES = {"failed": "failed", "timed_out": "timed out", "crashed": "crashed", "deferred": "was deferred"}


class _Line(NamedTuple):
    level: int
    text: str
    shown: tuple[str, ...] = ()
    """Fields to append in the text format; the text has the others."""


def logs_successes() -> bool:
    """Return True if attempts that succeed are logged."""
    return _ATTEMPT_LOG.isEnabledFor(logging.DEBUG)


def log_event(event: Event) -> None:
    """Log an event as one record with its fields attached; the default sink."""
    log = _ATTEMPT_LOG if isinstance(event, AttemptFinished) else _LOG
    level, text, shown = _line(event)
    if log.isEnabledFor(level):
        fields = msgspec.structs.asdict(event)
        if isinstance(event, AttemptFinished) and level < logging.ERROR and not log.isEnabledFor(logging.DEBUG):
            fields["traceback"] = ""  # the traceback of each retried attempt would bury the other lines
        fields = {name: value for name, value in fields.items() if value != ""}
        names = tuple(name for name in shown if name in fields)
        log.log(level, "%s", text, extra={"event": type(event).__name__, "text_fields": names, **fields})


def _line(event: Event) -> _Line:
    match event:
        case AttemptFinished():
            return _attempt_line(event)
        case DatabaseChanged(up=True):
            return _Line(logging.INFO, f"the database is available again after {event.seconds:.0f} s")
        case DatabaseChanged():
            return _Line(logging.WARNING, f"the database is unavailable, trying again until it is back: {event.reason}")
        case LoopFailed():
            repeated = event.failures & (event.failures - 1)  # log the 1st, 2nd, 4th, 8th … failure in a row
            level = logging.DEBUG if event.unavailable or repeated else logging.WARNING
            return _Line(level, f"maintenance loop {event.loop!r} failed and will run again: {event.error}")
        case JobsReaped():
            return _Line(logging.WARNING, f"reclaimed {event.jobs} jobs from workers whose lease expired")
        case RedisChanged(up=True):
            return _Line(logging.INFO, "Redis is available")
        case RedisChanged():
            return _Line(logging.WARNING, f"Redis is unavailable, using the database instead: {event.reason}")
        case BreakerChanged(open=True):
            text = f"breaker of {event.destination} opened, webhooks of {event.tenant!r} wait: {event.error}"
            return _Line(logging.WARNING, text)
        case BreakerChanged():
            return _Line(logging.INFO, f"breaker of {event.destination} closed for webhooks of {event.tenant!r}")
        case _:
            assert_never(event)


def _attempt_line(event: AttemptFinished) -> _Line:
    shown = ("job_id", "queue", "tenant", "fingerprint")
    what = f"{event.job_type}: attempt {event.attempt} of {event.max_attempts}"
    after = f"after {event.seconds:.3g} s"
    if event.outcome in _FAILURES:
        level, then = logging.WARNING, f"runs again in {event.retry_in:g} s" if event.retry_in else "runs again now"
        if event.status == "dead":
            level, then = logging.ERROR, "the job is dead"
        return _Line(level, f"{what} {_FAILURES[event.outcome]} {after}, {then}: {event.error}", shown)
    if event.status == "dead":  # released or snoozed too often
        return _Line(logging.ERROR, f"{what} was {event.outcome}, the job is dead: {event.error}", shown)
    if event.outcome == "cancelled":
        return _Line(logging.INFO, f"{what} cancelled the job {after}", shown)
    return _Line(logging.DEBUG, f"{what} {event.outcome} {after}", shown)
