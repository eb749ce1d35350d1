"""Start deadlines of jobs that a worker has claimed and not started."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from holdfast.model.job import Job
from holdfast.model.time import Duration, in_seconds

if TYPE_CHECKING:
    from holdfast.model.ids import JobId


class StartDeadlines:
    """Start deadlines of claimed jobs, measured on this node's monotonic clock.

    `started_at` (the claim) and the deadline both come from the database's clock, so the span between them is exact;
    this node's clock only measures how much of the span has passed.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[JobId, float] = {}

    def add(self, jobs: Iterable[Job]) -> None:
        """Record the deadlines of jobs that were just claimed."""
        for job in jobs:
            if job.deadline is not None and job.started_at is not None:
                self._until[job.id] = self._monotonic() + in_seconds(Duration(job.deadline - job.started_at))

    def forget(self, job: Job) -> None:
        """Forget the deadline of a job that will not start here."""
        self._until.pop(job.id, None)

    def may_start(self, job: Job) -> bool:
        """Return True if the job may still start. Forgets the job, so call it once."""
        until = self._until.pop(job.id, None)
        return until is None or self._monotonic() < until
