"""Job in a slot of a worker process."""

import time
from typing import TYPE_CHECKING

from holdfast.model.ids import JobId
from holdfast.model.job import Job
from holdfast.model.outcome import Interrupted, Outcome, TimedOut
from holdfast.model.time import Duration, in_seconds
from holdfast.worker.context.attempt_logs import AttemptLogs
from holdfast.worker.running.runner import HandlerCall

if TYPE_CHECKING:
    import asyncio

    from holdfast.worker.context.context import Context, SyncContext

AttemptKey = tuple[JobId, int]
"""Job and fence of an attempt: a job may be claimed again before its handler has ended."""


class Run:
    """Job in a slot."""

    __slots__ = (
        "attempt_logs",
        "call",
        "context",
        "entry",
        "job",
        "over",
        "since",
        "slot",
        "stop_reason",
        "timeout",
        "timer",
    )

    def __init__(self, job: Job, call: HandlerCall, slot: "asyncio.Task[None] | None") -> None:
        self.job = job
        self.call = call
        self.entry: int | None = None
        self.slot = slot
        self.timeout = call.timeout if job.timeout is None else job.timeout
        self.since = time.monotonic()
        self.context: Context | SyncContext | None = None
        self.attempt_logs = AttemptLogs() if call.place == "process" else None
        self.timer: asyncio.TimerHandle | None = None
        self.stop_reason: str | None = None
        """Reason for which it is being stopped: timeout, lost or drain."""
        self.over = False
        """The outcome is decided; anything that the handler still does is ignored."""

    @property
    def attempt(self) -> AttemptKey:
        """Job and fence, which together identify the attempt."""
        return self.job.id, self.job.fence

    @property
    def deadline(self) -> float | None:
        """Time at which the handler is stopped, by the monotonic clock."""
        return None if self.timeout is None else self.since + in_seconds(self.timeout)


def stop_outcome(run: Run) -> Outcome | None:
    """Return the outcome of a stopped handler, whatever the handler returned or raised."""
    match run.stop_reason:
        case "timeout":
            return TimedOut(run.timeout or Duration(0))
        case "drain":
            return Interrupted()
        case _:  # lost: this worker no longer holds the job, so there is nothing to report
            return None
