"""Deadlines of jobs that a worker has claimed and not begun."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from holdfast.model.job import Job
from holdfast.model.time import Duration, in_seconds

if TYPE_CHECKING:
    from holdfast.model.ids import JobId


class Patience:
    """Knows how long jobs may wait here. Each was claimed in time: what counts is how long it is here since.

    The claim was at `started_at` by the database's clock, and the deadline is by the same; so the span between them is
    exact, and this node's clock measures spans only.
    """

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until: dict[JobId, float] = {}

    def claimed(self, jobs: Iterable[Job]) -> None:
        """These have just come."""
        for job in jobs:
            if job.deadline is not None and job.started_at is not None:
                self._until[job.id] = self._monotonic() + in_seconds(Duration(job.deadline - job.started_at))

    def left(self, job: Job) -> bool:
        """Whether a job may still begin; asked once, as it is about to."""
        until = self._until.pop(job.id, None)
        return until is None or self._monotonic() < until
