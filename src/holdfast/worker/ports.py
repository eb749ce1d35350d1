"""Interfaces between a worker and its backend, which is an engine or an HTTP client of one."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from holdfast.model.claim_check import ClaimCheck
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import HeldJob, Job
from holdfast.model.job_type import JobType
from holdfast.model.lane import LaneReady
from holdfast.model.outcome import Report
from holdfast.model.step import Step
from holdfast.model.time import Duration
from holdfast.model.worker import LeaseStatus, Unresponsiveness, WorkerInfo


class JobClaims(Protocol):
    """Claims of one worker on one set of queues."""

    async def claim(self, slots: int) -> list[Job]:
        """Claim and return at most `slots` jobs."""

    async def check(self, jobs: Sequence[Job]) -> ClaimCheck:
        """Return which of these claimed jobs must not start: cancelled, taken away or paused."""

    def recheck_delay(self) -> float:
        """Return the seconds after which to claim again even without a wake-up."""

    def on_ready(self, notifications: Iterable[LaneReady] | None) -> None:
        """Process the result of `WakeupSubscription.wait`."""

    def stop(self) -> None:
        """End a claim that is waiting for jobs; it returns none."""


class WakeupSubscription(Protocol):
    """Subscription to the wake-ups of some queues."""

    async def wait(self, timeout: float) -> list[LaneReady] | None:
        """Wait until a job may have become ready, or until the timeout.

        Returns:
            The lanes with ready jobs; an empty list if they are not known; None after the timeout.
        """

    @property
    def poll_interval_s(self) -> float | None:
        """Longest time for which this subscription misses a ready job; None if wake-ups may be lost.

        If it is set, a wait without a wake-up means that there is nothing to claim.
        """

    def reset(self) -> None:
        """Reset the polling back-off because a claim returned jobs."""

    def close(self) -> None:
        """End the subscription."""


class JobSource(Protocol):
    """Backend from which a worker claims jobs and to which it reports outcomes."""

    def claims(self, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None = None) -> JobClaims:
        """Return the claims of a worker on these queues and job types."""

    def listen(self, queues: Sequence[str]) -> WakeupSubscription:
        """Subscribe to the wake-ups of these queues."""

    async def settle_many(self, reports: Sequence[Report]) -> set[JobId]:
        """Report outcomes of attempts; return the ids of the jobs whose report took effect."""

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """Return the jobs that the worker holds according to the database."""

    async def held_attempts(self, worker: WorkerId, limit: int) -> list[tuple[JobId, int]]:
        """Return the ids and fences of the jobs that the worker holds according to the database."""

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        """Return the ids of those jobs in `held` that the worker no longer holds."""


class LeaseService(Protocol):
    """Worker leases."""

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Register a worker, its job types and a lease that starts now."""

    async def renew(
        self,
        worker: WorkerId,
        lease: Duration,
        *,
        memory: int | None = None,
        draining: bool = False,
        unresponsive: Unresponsiveness | None = None,
    ) -> LeaseStatus:
        """Extend a lease unless it has expired; the status may be a request to drain."""

    async def depart(self, worker: WorkerId) -> bool:
        """Remove a worker that holds no job; return False if it was not removed."""


class TransactionSession(Protocol):
    """Database transaction for a handler's statements, committed with its guard row."""

    @property
    def recorded(self) -> bytes | None:
        """Return the stored guard if an earlier attempt committed; no transaction is open then."""

    async def execute(self, sql: str, *args: Any) -> int:
        """Run a statement and return the number of rows it affected."""

    async def fetch(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows."""

    def record(self, result: bytes) -> None:
        """Set the content of the guard row."""


class StepStore(Protocol):
    """Storage of steps, progress and transactions. Only the current holder of a job can write."""

    async def steps_of(self, held: HeldJob) -> Sequence[Step]:
        """Return the steps that earlier attempts of a job recorded."""

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        """Record a step unless it is already done; return False if the job is no longer held."""

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        """Store the job's progress as JSON; return False if the job is no longer held."""

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[TransactionSession]:
        """Open a transaction that commits writes, guard (job, key) and fence check together.

        Raises:
            LeaseLost: The job is no longer held.
            OutcomeUnknown: The connection broke during the commit.
        """


class AttemptService(JobSource, StepStore, Protocol):
    """Everything that a running job needs: claims, outcomes, steps and progress."""


class WorkerBackend(Protocol):
    """Backend of a worker process: an engine, or an HTTP client of one."""

    @property
    def attempts(self) -> AttemptService:
        """Claims, outcomes, steps and progress."""

    async def aclose(self) -> None:
        """Close all connections."""


class SupervisorBackend(Protocol):
    """Backend of a supervisor: leases, and the jobs of a worker process that has died."""

    @property
    def attempts(self) -> JobSource:
        """Claims and outcomes."""

    @property
    def workers(self) -> LeaseService:
        """Worker leases."""

    async def run_maintenance(self, stop: asyncio.Event) -> None:
        """Run maintenance (reaping, promotion, pruning, table upkeep) until `stop` is set."""

    async def aclose(self) -> None:
        """Close all connections."""
