"""Jobs that a queue runner has claimed and not started."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from holdfast.model.job import Job

if TYPE_CHECKING:
    from holdfast.model.claim_check import ClaimCheck

MAX_AGE_S = 0.25
"""Age of a claim, or of its last check, after which a job is checked again before it starts."""

MAX_WAIT_S = 1.0
"""Time after which a job that found no free slot is released, so that another worker can run it."""


class ClaimedJobs:
    """Queue of claimed jobs, oldest first, which knows how long each has waited."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._jobs: deque[tuple[Job, float]] = deque()
        """Jobs and the times at which they were added."""
        self._checked_at = float("-inf")

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter([job for job, _ in self._jobs])

    def add(self, jobs: Iterable[Job]) -> None:
        """Append jobs that were just claimed."""
        now = self._monotonic()
        self._jobs.extend((job, now) for job in jobs)

    @property
    def needs_check(self) -> bool:
        """True if the next job may have been cancelled or paused since it was claimed or checked."""
        return bool(self._jobs) and self._monotonic() - max(self._jobs[0][1], self._checked_at) > MAX_AGE_S

    def take(self) -> Job:
        """Remove and return the next job."""
        return self._jobs.popleft()[0]

    def apply(self, check: "ClaimCheck", began: float) -> list[Job]:
        """Remove the jobs that must not start, after a check that began then; return the paused ones."""
        self._checked_at = began
        if not (check.lost or check.paused):
            return []
        paused = [job for job, _ in self._jobs if job.id in check.paused and job.id not in check.lost]
        blocked = check.lost | check.paused
        self._jobs = deque((job, added) for job, added in self._jobs if job.id not in blocked)
        return paused

    def take_late(self) -> list[Job]:
        """Remove and return the jobs that have waited too long."""
        until = self._monotonic() - MAX_WAIT_S
        late: list[Job] = []
        while self._jobs and self._jobs[0][1] <= until:
            late.append(self._jobs.popleft()[0])
        return late

    def next_late(self) -> float | None:
        """Return the seconds until the next job has waited too long; None without jobs."""
        return max(0.0, self._jobs[0][1] + MAX_WAIT_S - self._monotonic()) if self._jobs else None

    def clear(self) -> list[Job]:
        """Remove and return all jobs."""
        jobs = [job for job, _ in self._jobs]
        self._jobs.clear()
        return jobs
