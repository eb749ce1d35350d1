"""Sink that writes events to the log."""

import logging
from collections.abc import Callable
from typing import assert_never

import msgspec

from holdfast.telemetry.events import BreakerChanged, Event, JobsReaped, LoopFailed, RedisChanged

Emit = Callable[[Event], None]

_LOG = logging.getLogger("holdfast")


def log_event(event: Event) -> None:
    """Log an event as one record with its fields attached; the default sink."""
    match event:
        case LoopFailed():
            level, text = logging.WARNING, f"maintenance loop {event.loop!r} failed and will run again: {event.error}"
        case JobsReaped():
            level, text = logging.WARNING, f"reclaimed {event.jobs} jobs from workers whose lease expired"
        case RedisChanged(up=True):
            level, text = logging.INFO, "Redis is available"
        case RedisChanged():
            level, text = logging.WARNING, f"Redis is unavailable, using the database instead: {event.reason}"
        case BreakerChanged(open=True):
            level = logging.WARNING
            text = f"breaker of {event.destination} opened, webhooks of {event.tenant!r} wait: {event.error}"
        case BreakerChanged():
            level, text = logging.INFO, f"breaker of {event.destination} closed for webhooks of {event.tenant!r}"
        case _:
            assert_never(event)
    _LOG.log(level, text, extra={"event": type(event).__name__, **msgspec.structs.asdict(event)})
