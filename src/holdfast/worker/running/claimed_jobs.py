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
"""Time after which a job without a free slot is released, so that another worker can run it."""


class _Claim:
    """Claimed job that has not started."""

    __slots__ = ("added_at", "checked_at", "job")

    def __init__(self, job: Job, added_at: float, checked_at: float) -> None:
        self.job = job
        self.added_at = added_at
        self.checked_at = checked_at
        """Time of the claim or of the last check: this worker held the job then."""


class ClaimedJobs:
    """Queue of claimed jobs, oldest first, which knows how long each has waited."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._claims: deque[_Claim] = deque()

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[Job]:
        return iter([claim.job for claim in self._claims])

    def add(self, jobs: Iterable[Job], *, just_claimed: bool = True) -> None:
        """Append jobs; those that were not just claimed are checked before they start."""
        now = self._monotonic()
        checked_at = now if just_claimed else float("-inf")
        self._claims.extend(_Claim(job, now, checked_at) for job in jobs)

    @property
    def needs_check(self) -> bool:
        """True if the next job may have been cancelled or paused since it was claimed or checked."""
        return bool(self._claims) and self._monotonic() - self._claims[0].checked_at > MAX_AGE_S

    def take(self) -> Job:
        """Remove and return the next job."""
        return self._claims.popleft().job

    def apply(self, check: "ClaimCheck", checked: Iterable[Job]) -> list[Job]:
        """Remove the jobs that must not start and return the paused ones.

        Args:
            check: Result of the check.
            checked: Jobs that were checked. The check says nothing about a later claim of the same job.
        """
        now = self._monotonic()  # not the beginning of the check, or no job would start after a check that took long
        attempts = {(job.id, job.fence) for job in checked}
        kept: deque[_Claim] = deque()
        paused: list[Job] = []
        for claim in self._claims:
            job = claim.job
            if (job.id, job.fence) not in attempts:
                kept.append(claim)
            elif job.id in check.lost:
                continue
            elif job.id in check.paused:
                paused.append(job)
            else:
                claim.checked_at = now
                kept.append(claim)
        self._claims = kept
        return paused

    def take_late(self) -> list[Job]:
        """Remove and return the jobs that have waited too long."""
        until = self._monotonic() - MAX_WAIT_S
        late: list[Job] = []
        while self._claims and self._claims[0].added_at <= until:
            late.append(self.take())
        return late

    def next_late(self) -> float | None:
        """Return the seconds until the next job has waited too long; None without jobs."""
        return max(0.0, self._claims[0].added_at + MAX_WAIT_S - self._monotonic()) if self._claims else None

    def clear(self) -> list[Job]:
        """Remove and return all jobs."""
        jobs = list(self)
        self._claims.clear()
        return jobs
