"""Jobs that wait for a slot: checked before they start, and released if they wait too long."""

import asyncio
from collections.abc import Callable, Iterator

from holdfast.errors import HoldfastError
from holdfast.model.job import Job
from holdfast.worker.ports import JobClaims
from holdfast.worker.running.claimed_jobs import ClaimedJobs
from holdfast.worker.running.start_deadlines import StartDeadlines

RETRY_DELAY_S = 0.5
"""Seconds before a call that failed because the database is unavailable is repeated."""


class WaitingJobs:
    """Claimed jobs of one queue runner that have not started.

    Args:
        claims: Checks whether the worker still holds the jobs.
        release: Returns a job that will not start here.
        on_change: Called when jobs were removed, so that the queue runner can claim others.
    """

    def __init__(self, claims: JobClaims, *, release: Callable[[Job], None], on_change: Callable[[], None]) -> None:
        self._claims = claims
        self._release = release
        self._on_change = on_change
        self._jobs = ClaimedJobs()
        self._start_deadlines = StartDeadlines()
        self._checking = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    def add(self, jobs: list[Job], *, just_claimed: bool = True) -> None:
        """Append jobs; those that were not just claimed are checked before they start."""
        if just_claimed:
            self._start_deadlines.add(jobs)
        self._jobs.add(jobs, just_claimed=just_claimed)
        if self._timer is None:
            self._schedule_release()

    def take(self) -> Job:
        """Remove and return the next job."""
        return self._jobs.take()

    def may_start(self, job: Job) -> bool:
        """Return False if the start deadline of a taken job has passed. Call it once."""
        return self._start_deadlines.may_start(job)

    def clear(self) -> list[Job]:
        """Remove and return all jobs."""
        return self._jobs.clear()

    @property
    def needs_check(self) -> bool:
        """True if the next job may have been cancelled or paused since it was claimed or checked."""
        return self._jobs.needs_check

    async def check(self) -> None:
        """Drop jobs that were cancelled since their claim, and release those that were paused.

        If the check fails, no job starts: the database is unavailable, and the lease decides.
        """
        async with self._checking:
            if not self._jobs.needs_check:  # another slot has checked them
                return
            to_check = list(self._jobs)
            try:
                check = await self._claims.check(to_check)
            except HoldfastError:
                await asyncio.sleep(RETRY_DELAY_S)
                return
            self._release_all(self._jobs.apply(check, to_check))

    def _schedule_release(self) -> None:
        delay = self._jobs.next_late()
        loop = asyncio.get_running_loop()
        self._timer = None if delay is None else loop.call_later(delay, self._release_late)

    def _release_late(self) -> None:
        """Release jobs that found no free slot here, because another worker may have one."""
        self._release_all(self._jobs.take_late())
        self._schedule_release()

    def _release_all(self, jobs: list[Job]) -> None:
        for job in jobs:
            self._start_deadlines.forget(job)
            self._release(job)
        self._on_change()
