"""Decision about pausing and resuming a queue."""

from typing import NamedTuple

from msgspec import UNSET, UnsetType

from holdfast.errors import Invalid
from holdfast.model.queue import Queue
from holdfast.model.time import Instant


class PauseChange(NamedTuple):
    """Requested change of a queue's pause; UNSET fields keep their value."""

    paused: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    until: Instant | UnsetType | None = UNSET


def change_pause(before: Queue, change: PauseChange, now: Instant) -> Queue | None:
    """Return the queue to save; None if nothing changes.

    Raises:
        Invalid: `until` is in the past, or is given for a queue that is not paused.
    """
    paused = change.paused
    if isinstance(paused, UnsetType):
        paused = not before.open_at(now)
    if not paused:
        if not isinstance(change.until, UnsetType) and change.until is not None:
            raise Invalid("until: it is the end of a pause: give it with 'paused': true", pointer="/until")
        return Queue(before.name) if before.paused else None
    until = before.until if isinstance(change.until, UnsetType) else change.until
    if until is not None and until <= now:
        if not isinstance(change.until, UnsetType):
            raise Invalid("until: it is in the past: give a time in the future, or omit it", pointer="/until")
        until = None
    reason = before.reason if isinstance(change.reason, UnsetType) else change.reason
    return Queue(before.name, paused=True, reason=reason, until=until)
