"""Jobs that remote workers hold according to the database, and that they do not run.

A failover to a server that lacks the latest writes brings back jobs that a worker has reported. Because the worker
renews its lease, no reap would recover them. Its renewals name the jobs that it runs, and this service releases the
others.
"""

import time
from collections.abc import Awaitable, Callable, Collection, Sequence

from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import HeldJob
from holdfast.model.outcome import REPORT_LOST, Report
from holdfast.model.state import Status
from holdfast.model.time import Duration, in_seconds
from holdfast.store.port.store import Store

COMPARE_INTERVAL_S = 10.0
"""Renewals of a worker are compared at most this often."""

MIN_MISSING_S = 15.0
"""Time for which a job must be missing from the renewals of its worker; at least one lease."""

MAX_COMPARED_JOBS = 10_000
MAX_WORKERS = 10_000
_RETENTION_S = 600.0

_Attempt = tuple[JobId, int]


class _Comparison:
    """Latest comparison for one worker: its time, and since when each attempt is missing."""

    def __init__(self, at: float, missing: dict[_Attempt, float]) -> None:
        self.at = at
        self.missing = missing


class UnknownJobs:
    """Comparison of the jobs that remote workers say they run with those that they hold."""

    def __init__(
        self,
        store: Store,
        settle: Callable[[Sequence[Report]], Awaitable[set[JobId]]],
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._settle = settle
        self._monotonic = monotonic
        self._comparisons: dict[WorkerId, _Comparison] = {}
        """By worker, the latest comparison last."""

    async def compare(self, worker: WorkerId, running: Collection[HeldJob], lease: Duration) -> set[JobId]:
        """Release jobs that the worker holds and has not named for a lease; return their ids.

        Args:
            worker: The worker, whose lease is alive.
            running: All jobs that it runs or has not settled yet.
            lease: Length of its lease.
        """
        now = self._monotonic()
        earlier = self._comparisons.get(worker)
        if (earlier is not None and now - earlier.at < COMPARE_INTERVAL_S) or len(running) >= MAX_COMPARED_JOBS:
            return set()
        since = {} if earlier is None else earlier.missing
        held = await self._store.read(lambda tx: tx.held_attempts(worker, MAX_COMPARED_JOBS))
        missing = set(held) - {(job.id, job.fence) for job in running}
        self._comparisons.pop(worker, None)
        self._comparisons[worker] = _Comparison(now, {attempt: since.get(attempt, now) for attempt in missing})
        self._forget(now)
        min_missing = max(MIN_MISSING_S, in_seconds(lease))
        unknown = {attempt for attempt in missing if now - since.get(attempt, now) >= min_missing}
        return await self._release(worker, unknown) if unknown else set()

    async def _release(self, worker: WorkerId, attempts: Collection[_Attempt]) -> set[JobId]:
        jobs = await self._store.single(lambda tx: tx.get([job_id for job_id, _ in attempts]))
        return await self._settle(
            [
                Report(job, REPORT_LOST)
                for job in jobs
                if (job.id, job.fence) in attempts and job.worker == worker and job.status is Status.RUNNING
            ]
        )

    def _forget(self, now: float) -> None:
        """Forget workers that have not renewed for long, and the oldest if there are too many."""
        while self._comparisons:
            oldest = next(iter(self._comparisons))
            if self._comparisons[oldest].at > now - _RETENTION_S and len(self._comparisons) <= MAX_WORKERS:
                return
            del self._comparisons[oldest]
