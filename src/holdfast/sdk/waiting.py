"""What both clients decide alike while they wait: for a job, for a stream, for the rest of many jobs. No I/O."""

import time
from datetime import timedelta
from typing import Any

from holdfast.errors import Invalid, JobCancelled, JobFailed, OutcomeUnknown, WaitTimeout
from holdfast.model.state import Status
from holdfast.model.time import in_seconds, parse_duration
from holdfast.sdk.models import Bulk, Event, Job
from holdfast.sdk.options import Span
from holdfast.sdk.responses import Response, check
from holdfast.sdk.retry import Address, Away

ENDED = Away(OutcomeUnknown("the stream of events ended"))

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Waiting:
    """Until when a job is waited for; it is looked at less often with time."""

    def __init__(self, timeout: Span | None) -> None:
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + _seconds(timeout)
        self._pause = _FIRST_PAUSE

    def pause(self, job: Job) -> float:
        """Seconds until the next look; raises `WaitTimeout` when there is none."""
        pause = self._pause
        self._pause = min(pause * 1.5, _LONGEST_PAUSE)
        if self._end is None:
            return pause
        left = self._end - time.monotonic()
        if left <= 0:
            told = f"job {job.id} is {job.status} and not finished after {self._timeout}; it goes on"
            raise WaitTimeout(told)
        return min(pause, left)


def verdict(job: Job) -> Any:
    """A finished job's result, or what stands in for it as an error."""
    if job.status is Status.SUCCEEDED:
        return job.result
    if job.status is Status.CANCELLED:
        raise JobCancelled(job.id, reason=job.reason or "no reason was given")
    kind, message = ("Unknown", "nothing was recorded") if job.error is None else (job.error.kind, job.error.message)
    raise JobFailed(job.id, kind=kind, message=message, attempts=job.attempts)


def refused(address: Address, response: Response) -> Away:
    """A stream was not opened: why, unless asking again may help."""
    found = address.judged(response)
    if isinstance(found, Away):
        return found
    check(response)
    return ENDED


def is_last(event: Event) -> bool:
    """Whether a stream is over for good: the caller would not be let in again."""
    return event.kind == "reset" and event.data.get("reason") == "revoked"


class Total:
    """An action on many jobs, added up over the requests that it takes."""

    def __init__(self) -> None:
        self.bulk = Bulk(0, 0, dry_run=False)
        self.goes_on = True
        self.cursor: str | None = None

    def add(self, part: Bulk) -> None:
        """What one request did."""
        self.bulk = Bulk(self.bulk.matched + part.matched, self.bulk.changed + part.changed, part.dry_run)
        self.cursor = part.next_cursor
        self.goes_on = part.next_cursor is not None


def _seconds(span: Span) -> float:
    if isinstance(span, timedelta):
        return span.total_seconds()
    try:
        return in_seconds(parse_duration(span))
    except ValueError as error:
        raise Invalid(f"timeout: {error}", pointer="/timeout") from None
