"""Remote workers, which claim and settle over the network; every call is authorised."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Unpack

from holdfast import tasks
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.claiming.dispatch_settings import DispatchSettingsCache
from holdfast.engine.jobs import steps
from holdfast.engine.jobs.queries import count_fitting, read_steps
from holdfast.engine.sized_pages import SizedPage
from holdfast.engine.workers import WorkerReport, WorkerService
from holdfast.errors import Invalid, JobNotHeld, LeaseLost, Rejected
from holdfast.model.ids import JobId, WorkerId, worker_name
from holdfast.model.job import HeldJob, Job
from holdfast.model.job_type import JobType
from holdfast.model.lane import LaneReady
from holdfast.model.outcome import (
    BackendUnavailable,
    CancelledByHandler,
    Crashed,
    Failed,
    Interrupted,
    Logs,
    Outcome,
    Report,
    Snoozed,
    Succeeded,
    TimedOut,
)
from holdfast.model.state import Status
from holdfast.model.step import Step
from holdfast.model.time import Duration
from holdfast.model.worker import LeaseState, WorkerInfo
from holdfast.store.port.store import Store
from holdfast.store.port.wakeups import Subscription

POLL_INTERVAL_S = 1.0
"""Interval of claims during a long poll; bounds the delay caused by a lost wake-up."""

MAX_POLL_STATES = 2_000
MAX_CLAIM_BYTES = 8 * 1024 * 1024
"""Largest total size of the jobs in the response to one claim; jobs beyond it are released."""
POLL_STATE_RETENTION_S = 60.0
"""Time for which the scheduling state of a worker is kept after its last poll."""

_AFTER_FAILURE = frozenset({Status.RETRYING, Status.READY, Status.DEAD})
_STATUS_AFTER: dict[type[Outcome], frozenset[Status]] = {
    Succeeded: frozenset({Status.SUCCEEDED}),
    Failed: _AFTER_FAILURE,
    TimedOut: _AFTER_FAILURE,
    Crashed: _AFTER_FAILURE,
    Snoozed: frozenset({Status.SCHEDULED, Status.READY, Status.DEAD}),
    Interrupted: frozenset({Status.READY, Status.DEAD}),
    BackendUnavailable: frozenset({Status.SCHEDULED}) | _AFTER_FAILURE,
    CancelledByHandler: frozenset({Status.CANCELLED}),
}

Settle = Callable[[Sequence[Report]], Awaitable[set[JobId]]]


class ClaimRequest(NamedTuple):
    """Request for at most `limit` jobs of these queues and types (None: of any type)."""

    queues: tuple[str, ...]
    types: frozenset[str] | None
    limit: int


class ClaimResponse(NamedTuple):
    """Claimed jobs, or the request to drain."""

    jobs: list[Job]
    draining: bool = False
    """The worker must stop claiming, and shut down when its jobs are done."""


class AttemptResult(NamedTuple):
    """Outcome of an attempt as its worker reports it."""

    id: JobId
    fence: int
    outcome: Outcome
    logs: Logs | None = None


class _PollState:
    """Scheduling state and wake-ups of one worker, kept between its polls."""

    def __init__(self, claims: Claims, subscription: Subscription) -> None:
        self.claims = claims
        self.subscription = subscription
        self.polls = 0
        """Polls in progress."""
        self.last_used = 0.0


class RemoteWorkers:
    """Use cases of remote workers.

    `by` is the tenant of the caller, or None for callers that may act for all tenants.

    A worker that is not registered, whose lease is gone, or that belongs to another tenant raises the same `LeaseLost`,
    and a job that it does not hold the same `JobNotHeld`, so that ids cannot be probed. Before jobs are settled, they
    are read from the database; the worker's view of them is not trusted.
    """

    def __init__(self, store: Store, workers: WorkerService, *, settle: Settle) -> None:
        self._store = store
        self._workers = workers
        self._settle = settle
        self._settings = DispatchSettingsCache(store)
        self._poll_states: dict[tuple[WorkerId, ClaimRequest], _PollState] = {}

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Register a worker under a new id; raises `LeaseLost` if the id is taken."""
        if not worker.id:
            raise Invalid("this is not a valid worker id: leave it out to get a new one", pointer="/worker")
        try:
            await self._workers.register(worker, lease, described)
        except Rejected as error:
            if await self._store.single(lambda tx: tx.lease_state(worker.id)) is None:
                raise
            raise _lost(worker.id) from error

    async def claim(
        self,
        worker: WorkerId,
        request: ClaimRequest,
        *,
        wait: float,
        by: str | None,
        ends: Collection[asyncio.Future[Any]],
    ) -> ClaimResponse:
        """Claim jobs by long polling: return as soon as there are some.

        A draining worker gets no jobs, after a short delay: this slows down a worker that ignores the request.

        Args:
            worker: The worker that claims.
            request: Queues, types and maximum number of jobs.
            wait: Seconds after which to return without jobs.
            by: Tenant of the caller.
            ends: Futures that end the poll. The first is done when the client disconnected; jobs claimed by then are
                released.
        """
        state = await self._require_live(worker, by)
        if state.draining:
            await _wait_first(asyncio.sleep(min(wait, POLL_INTERVAL_S), None), ends)
            return ClaimResponse([], draining=True)
        if not (request.limit and request.queues):
            return ClaimResponse([])
        return ClaimResponse(await self._claim(worker, request, state.tenant, wait=wait, ends=ends))

    async def _claim(
        self,
        worker: WorkerId,
        request: ClaimRequest,
        tenant: str | None,
        *,
        wait: float,
        ends: Collection[asyncio.Future[Any]],
    ) -> list[Job]:
        disconnected = next(iter(ends), None)
        until = time.monotonic() + wait
        with self._poll(worker, request, tenant) as poll:
            # Take pending notifications now: applied later, they would lower floors to rows claimed long ago.
            notifications = await poll.subscription.wait(0)
            while not any(end.done() for end in ends):
                poll.claims.on_ready(notifications)
                jobs = await poll.claims.claim(request.limit)
                if jobs and disconnected is not None and disconnected.done():
                    await self._settle([Report(job, Interrupted(started=False)) for job in jobs])
                    return []
                left = until - time.monotonic()
                if jobs or left <= 0:
                    poll.subscription.reset()
                    return await self._release_excess(jobs)
                timeout = min(left, POLL_INTERVAL_S, poll.claims.recheck_delay())
                notifications = await _wait_first(poll.subscription.wait(timeout), ends)
        return []

    async def _release_excess(self, jobs: list[Job]) -> list[Job]:
        """Return the first jobs, up to `MAX_CLAIM_BYTES`, and release the others."""
        count = count_fitting(jobs, MAX_CLAIM_BYTES)
        if count < len(jobs):
            await self._settle([Report(job, Interrupted(started=False)) for job in jobs[count:]])
        return jobs[:count]

    async def renew(self, worker: WorkerId, lease: Duration, *, by: str | None, **report: Unpack[WorkerReport]) -> bool:
        """Renew a live lease and return True if the worker must drain; raises `LeaseLost`."""
        state = await self._require_live(worker, by)
        if not await self._store.single(lambda tx: tx.renew(worker, lease, **report)):
            raise _lost(worker)
        return state.draining or report.get("draining", False)

    async def lost(self, held: Collection[HeldJob], worker: WorkerId, *, by: str | None) -> set[JobId]:
        """Return the ids of those of `held` that the worker no longer holds."""
        await self._require_registered(worker, by)
        return await self._store.single(lambda tx: tx.lost(held)) if held else set()

    async def paused(self, held: Collection[HeldJob]) -> set[JobId]:
        """Return the ids of those of `held` whose queue, type or tenant is paused."""
        await self._settings.refresh()
        view = self._settings.view
        if not (held and any(view.paused)):
            return set()
        return {job.id for job in await self._read([job.id for job in held]) if view.pauses(job)}

    async def held(self, worker: WorkerId, limit: int, *, by: str | None) -> list[Job]:
        """Return jobs that a worker holds."""
        await self._require_registered(worker, by)
        return await self._store.run(lambda tx: tx.held_by(worker, limit))

    async def settle(self, worker: WorkerId, results: Sequence[AttemptResult], *, by: str | None) -> set[JobId]:
        """Settle attempts; return the ids whose result took effect now or in an earlier call.

        Idempotent: safe to retry.
        """
        tenant = (await self._require_registered(worker, by)).tenant
        by_id = {result.id: result for result in results}
        if len(by_id) < len(results):
            raise Invalid("a job occurs twice in the outcomes: report each job once", pointer="/outcomes")
        jobs = await self._read(by_id)
        reports = [
            Report(job, result.outcome, result.logs)
            for job in jobs
            if job.status is Status.RUNNING and (result := by_id[job.id]).fence == job.fence and job.worker == worker
        ]
        done = await self._settle(reports) if reports else set()
        if len(done) < len(by_id):
            # A worker of one tenant must not learn whether a job of another exists.
            remaining = [job for job in await self._read(by_id.keys() - done) if tenant in (None, job.tenant)]
            done |= {job.id for job in remaining if _was_settled(job, by_id[job.id], worker)}
        return done

    async def depart(self, worker: WorkerId, *, by: str | None) -> bool:
        """Remove a worker; False if it still holds jobs."""
        await self._require_registered(worker, by)
        return await self._workers.depart(worker)

    async def steps(self, held: HeldJob, *, after: str, by: str | None) -> SizedPage[Step]:
        """Return a page of the steps of a held job, by key; raises `JobNotHeld` if it is not held."""
        if await self.lost([held], held.worker, by=by):
            raise _not_held(held)
        return await self._store.read(lambda tx: read_steps(tx, held.id, after))

    async def job(self, held: HeldJob, *, by: str | None) -> Job:
        """Return a job that the worker holds; raises `JobNotHeld` if it does not."""
        if await self.lost([held], held.worker, by=by):
            raise _not_held(held)
        found = await self._store.single(lambda tx: tx.get([held.id]))
        if not found:
            raise _not_held(held)
        return found[0]

    async def record_step(self, held: HeldJob, step: Step, *, by: str | None) -> None:
        """Record a step; raises `JobNotHeld` if the worker no longer holds the job."""
        await self._require_registered(held.worker, by)
        if not await steps.record(self._store, held, step):
            raise _not_held(held)

    async def save_progress(self, held: HeldJob, progress: bytes, *, by: str | None) -> None:
        """Save a job's progress; raises `JobNotHeld` if the worker no longer holds it."""
        await self._require_registered(held.worker, by)
        if not await steps.save_progress(self._store, held, progress):
            raise _not_held(held)

    def close(self) -> None:
        """Unsubscribe all polls."""
        for poll in self._poll_states.values():
            poll.subscription.close()
        self._poll_states.clear()

    async def _require_live(self, worker: WorkerId, by: str | None) -> LeaseState:
        """Return the lease of the caller's worker; raises `LeaseLost` if it has expired."""
        state = await self._require_registered(worker, by)
        if state.left <= 0:
            raise _lost(worker)
        return state

    async def _require_registered(self, worker: WorkerId, by: str | None) -> LeaseState:
        """Return the lease of the caller's worker, even if it has expired.

        A worker whose lease expired may still settle jobs that were not reaped yet.
        """
        state = await self._store.single(lambda tx: tx.lease_state(worker))
        if state is None or (by is not None and state.tenant != by):
            raise _lost(worker)
        return state

    async def _read(self, ids: Collection[JobId]) -> list[Job]:
        return await self._store.single(lambda tx: tx.get(ids))

    @contextmanager
    def _poll(self, worker: WorkerId, request: ClaimRequest, tenant: str | None) -> Iterator[_PollState]:
        key = (worker, request._replace(limit=0))
        poll = self._poll_states.pop(key, None)
        if poll is None:
            types = None if request.types is None else sorted(request.types)
            claims = Claims(self._store, worker, request.queues, types, tenant=tenant)
            poll = _PollState(claims, self._store.listen(request.queues))
        self._poll_states[key] = poll
        poll.polls += 1
        try:
            yield poll
        finally:
            poll.polls -= 1
            poll.last_used = time.monotonic()
            self._evict(poll.last_used)

    def _evict(self, now: float) -> None:
        """Drop poll states not used within their retention, and the oldest if there are too many."""
        excess = len(self._poll_states) - MAX_POLL_STATES
        for key, poll in list(self._poll_states.items()):
            if poll.polls:
                continue
            if excess <= 0 and poll.last_used > now - POLL_STATE_RETENTION_S:
                return
            excess -= 1
            poll.subscription.close()
            del self._poll_states[key]


def _was_settled(job: Job, result: AttemptResult, worker: WorkerId) -> bool:
    """Return True if an earlier call, whose response was lost, settled the job with this result."""
    holder = worker if job.status.terminal else None
    return job.fence == result.fence and job.worker == holder and job.status in _STATUS_AFTER[type(result.outcome)]


async def _wait_first(
    notifications: Coroutine[Any, Any, list[LaneReady] | None], ends: Collection[asyncio.Future[Any]]
) -> list[LaneReady] | None:
    """Wait for notifications; return None if one of `ends` is done first."""
    waiting = tasks.start(notifications, name="holdfast long poll", awaited=True)
    try:
        await asyncio.wait({waiting, *ends}, return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else None
    finally:
        await tasks.stop(waiting)


def _lost(worker: WorkerId) -> LeaseLost:
    return LeaseLost(f"worker {worker_name(worker)!r} has no lease: stop its jobs and register again")


def _not_held(held: HeldJob) -> JobNotHeld:
    return JobNotHeld(f"job {held.id} is not held by this worker (any longer): stop it, its results are discarded")
