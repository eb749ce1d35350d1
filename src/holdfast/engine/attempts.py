"""Attempts to run jobs: claim a job, record its steps and progress, report its outcome."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager

from holdfast.engine.batcher import Batcher
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.clock import DatabaseClock
from holdfast.engine.jobs import settle, steps
from holdfast.engine.jobs.attempt_events import finished_attempts
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import HeldJob, Job, RetryRule
from holdfast.model.outcome import Outcome, Report
from holdfast.model.step import Step
from holdfast.model.time import Instant
from holdfast.model.transition import Transition
from holdfast.store.port.store import Session, Store
from holdfast.store.port.wakeups import Subscription
from holdfast.telemetry.emit import Emit, log_event, logs_successes

_SETTLE_BATCH_SIZE = 500


class Attempts:
    """Use cases of workers that run jobs. Belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        clock: DatabaseClock,
        *,
        retry: RetryRule,
        rng: Callable[[], float],
        emit: Emit = log_event,
    ) -> None:
        self._store = store
        self._clock = clock
        self._retry = retry
        self._rng = rng
        self._emit = emit
        self._settles: Batcher[Report, bool] = Batcher(self._flush_settles, max_batch_size=_SETTLE_BATCH_SIZE)

    def claims(self, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None = None) -> Claims:
        """Return the claims of a worker on these queues and job types (None: any type)."""
        return Claims(self._store, worker, queues, types)

    def listen(self, queues: Sequence[str]) -> Subscription:
        """Subscribe to wake-ups for these queues."""
        return self._store.listen(queues)

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """Return the jobs that a worker holds according to the database."""
        return await self._store.run(lambda tx: tx.held_by(worker, limit))

    async def held_attempts(self, worker: WorkerId, limit: int) -> list[tuple[JobId, int]]:
        """Return the ids and fences of the jobs that a worker holds according to the database."""
        return await self._store.read(lambda tx: tx.held_attempts(worker, limit))

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        """Return the ids in `held` that were cancelled or reassigned."""
        return await self._store.single(lambda tx: tx.lost(held))

    async def settle(self, job: Job, outcome: Outcome) -> bool:
        """Report the outcome of an attempt; False if the caller no longer held the job."""
        return await self._settles.submit(Report(job, outcome))

    async def settle_many(self, reports: Sequence[Report]) -> set[JobId]:
        """Report many outcomes, emit an event for each and return the ids of those that took effect."""
        transitions, ended_at = await self._decide(reports)
        done = await settle.apply(self._store, transitions, ended_at)
        for event in finished_attempts(reports, transitions, done=done, ended_at=ended_at, successes=logs_successes()):
            self._emit(event)
        return done

    async def settle_remote(self, reports: Sequence[Report]) -> set[JobId]:
        """Report many outcomes of remote workers, which log their attempts themselves."""
        return await settle.apply(self._store, *await self._decide(reports))

    async def _decide(self, reports: Sequence[Report]) -> tuple[list[Transition], Instant]:
        return await settle.decide(
            self._store, reports, default=self._retry, rng=self._rng, estimated_now=self._clock.now()
        )

    async def steps_of(self, held: HeldJob) -> list[Step]:
        """Return the steps that earlier attempts of a held job recorded."""
        return await steps.recorded(self._store, held.id)

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        """Record a step of a running job; False if the caller no longer holds it."""
        return await steps.record(self._store, held, step)

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        """Save the progress of a running job; False if the caller no longer holds it."""
        return await steps.save_progress(self._store, held, progress)

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Session]:
        """Open a transaction for a handler's statements; its step record commits with them."""
        return self._store.session(held, key)

    async def drain(self) -> None:
        """Wait until no report is in flight."""
        await self._settles.drain()

    async def _flush_settles(self, reports: Sequence[Report]) -> Sequence[bool]:
        """Settle each report; reports of the same job run in order and the first valid one wins."""
        results: list[bool] = [False] * len(reports)
        left = list(enumerate(reports))
        while left:
            batch: dict[JobId, int] = {}
            for index, report in left:
                batch.setdefault(report.job.id, index)
            done = await self.settle_many([reports[index] for index in batch.values()])
            for job_id, index in batch.items():
                results[index] = job_id in done
            left = [(index, report) for index, report in left if batch[report.job.id] != index]
        return results
