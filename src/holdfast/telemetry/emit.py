"""Where events go."""

import logging
from collections.abc import Callable
from typing import assert_never

import msgspec

from holdfast.telemetry.events import BreakerChanged, Event, JobsReaped, LoopFailed, RedisChanged

Emit = Callable[[Event], None]

_LOG = logging.getLogger("holdfast")


def log_event(event: Event) -> None:
    """The sink every process has: one log record, its fields attached."""
    match event:
        case LoopFailed():
            level, text = logging.WARNING, f"housekeeping loop {event.loop!r} failed, it goes on: {event.error}"
        case JobsReaped():
            level, text = logging.WARNING, f"took back {event.jobs} jobs from workers whose lease ran out"
        case RedisChanged(up=True):
            level, text = logging.INFO, "Redis answers"
        case RedisChanged():
            level, text = logging.WARNING, f"Redis does not answer, it is done without: {event.reason}"
        case BreakerChanged(open=True):
            text = f"{event.destination} is given a rest, webhooks of {event.tenant!r} to it are held: {event.error}"
            level = logging.WARNING
        case BreakerChanged():
            level, text = logging.INFO, f"{event.destination} is back, webhooks of {event.tenant!r} to it go out again"
        case _:
            assert_never(event)
    _LOG.log(level, text, extra={"event": type(event).__name__, **msgspec.structs.asdict(event)})
