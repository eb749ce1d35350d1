"""Waiting for jobs, streams and bulk actions, without I/O."""

import time
from datetime import timedelta
from typing import Any

from holdfast.errors import Invalid, JobCancelled, JobFailed, OutcomeUnknown, ResultTooLarge, WaitTimeout
from holdfast.model.bounds import MAX_RESULT_BYTES
from holdfast.model.result import size_of_truncated
from holdfast.model.state import Status
from holdfast.model.time import in_seconds, parse_duration
from holdfast.sdk.models import Bulk, Event, Job
from holdfast.sdk.options import Span
from holdfast.sdk.responses import Response, check
from holdfast.sdk.retry import NodeAddress, NodeFailure

STREAM_ENDED = NodeFailure(OutcomeUnknown("the event stream ended"))

_MIN_POLL_INTERVAL_S, _MAX_POLL_INTERVAL_S = 0.02, 0.5


class JobPoller:
    """Poll intervals while waiting for a job: they grow, and end at the timeout."""

    def __init__(self, timeout: Span | None) -> None:
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + _seconds(timeout)
        self._interval = _MIN_POLL_INTERVAL_S

    def next_interval(self, job: Job) -> float:
        """Return the seconds until the next poll; raises `WaitTimeout` after the timeout."""
        interval = self._interval
        self._interval = min(interval * 1.5, _MAX_POLL_INTERVAL_S)
        if self._end is None:
            return interval
        left = self._end - time.monotonic()
        if left <= 0:
            raise WaitTimeout(f"job {job.id} is still {job.status} after {self._timeout}; it continues to run")
        return min(interval, left)


def result_of(job: Job) -> Any:
    """Return the result of a finished job, or raise why there is none."""
    if job.status is Status.SUCCEEDED:
        if (size := size_of_truncated(job.result)) is not None:
            raise ResultTooLarge(job.id, size=size, maximum=MAX_RESULT_BYTES)
        return job.result
    if job.status is Status.CANCELLED:
        raise JobCancelled(job.id, reason=job.reason or "no reason was given")
    kind, message = ("Unknown", "no error was recorded") if job.error is None else (job.error.kind, job.error.message)
    raise JobFailed(job.id, kind=kind, message=message, attempts=job.attempts)


def stream_failure(address: NodeAddress, response: Response) -> NodeFailure:
    """Return the failure of a stream that was not opened, or raise it if a retry cannot help."""
    failure = address.response_failure(response)
    if failure is not None:
        return failure
    check(response)
    return STREAM_ENDED


def is_last(event: Event) -> bool:
    """Return whether the stream is over for good, because the API key was revoked."""
    return event.kind == "reset" and event.data.get("reason") == "revoked"


class BulkTotal:
    """Sum of the results of a bulk action over its requests."""

    def __init__(self) -> None:
        self.bulk = Bulk(0, 0, dry_run=False, next_cursor=None)
        self.incomplete = True
        self.cursor: str | None = None

    def add(self, part: Bulk) -> None:
        """Add the result of one request."""
        matched, changed = self.bulk.matched + part.matched, self.bulk.changed + part.changed
        self.bulk = Bulk(matched, changed, part.dry_run, next_cursor=None)
        self.cursor = part.next_cursor
        self.incomplete = part.next_cursor is not None


def _seconds(span: Span) -> float:
    if isinstance(span, timedelta):
        return span.total_seconds()
    try:
        return in_seconds(parse_duration(span))
    except ValueError as error:
        raise Invalid(f"timeout: {error}", pointer="/timeout") from None
