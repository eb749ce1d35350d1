"""Remote workers, which claim and settle over the network; every call is authorised."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Unpack

from holdfast.coordination.port import Registry
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.jobs import steps
from holdfast.engine.workers import WorkerReport, Workers
from holdfast.errors import Invalid, LeaseLost, Rejected
from holdfast.model.ids import JobId, WorkerId, worker_name
from holdfast.model.job import HeldJob, Job
from holdfast.model.job_type import JobType
from holdfast.model.lane import LaneReady
from holdfast.model.outcome import (
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
"""Seconds after which a poll looks by itself: so much a lost wake-up costs."""

MAX_POLL_STATES = 2_000
POLL_STATE_RETENTION_S = 60.0
"""Seconds that the turns of a worker are remembered after its last poll."""

_AGAIN = frozenset({Status.RETRYING, Status.READY, Status.DEAD})
_COMES_TO: dict[type[Outcome], frozenset[Status]] = {
    Succeeded: frozenset({Status.SUCCEEDED}),
    Failed: _AGAIN,
    TimedOut: _AGAIN,
    Crashed: _AGAIN,
    Snoozed: frozenset({Status.SCHEDULED, Status.READY, Status.DEAD}),
    Interrupted: frozenset({Status.READY, Status.DEAD}),
    CancelledByHandler: frozenset({Status.CANCELLED}),
}

Settle = Callable[[Sequence[Report]], Awaitable[set[JobId]]]


class ClaimRequest(NamedTuple):
    """What a worker asks for: at most `limit` jobs of these queues and types (None: of any type)."""

    queues: tuple[str, ...]
    types: frozenset[str] | None
    limit: int


class ClaimResponse(NamedTuple):
    """What a worker gets: jobs, or to hear that it is to end."""

    jobs: list[Job]
    draining: bool = False


class AttemptResult(NamedTuple):
    """What came of an attempt, as its holder names it."""

    id: JobId
    fence: int
    outcome: Outcome
    logs: Logs | None = None


class _PollState:
    """One worker's turns over the lanes, and its wake-ups, kept from one poll to the next."""

    def __init__(self, claims: Claims, subscription: Subscription) -> None:
        self.claims = claims
        self.subscription = subscription
        self.polls = 0
        self.left_at = 0.0


class RemoteWorkers:
    """The use cases of remote workers. `by` is the tenant of whoever calls, None for who may act for all.

    A worker that is not registered, whose lease is gone, or that belongs to another tenant is `LeaseLost`, in the same
    words: nobody learns which ids there are. Jobs are read from the database before they are settled, never believed.
    """

    def __init__(self, store: Store, workers: Workers, registry: Registry, *, settle: Settle) -> None:
        self._store = store
        self._workers = workers
        self._registry = registry
        self._settle = settle
        self._poll_states: dict[tuple[WorkerId, ClaimRequest], _PollState] = {}

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Enter a worker under an id that nobody has; `LeaseLost` if somebody has it."""
        if not worker.id:
            raise Invalid("no worker has this id: leave it out, and one is made", pointer="/worker")
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
        """Jobs for a worker, as soon as there are some; none after `wait` seconds, or when one of `ends` is done.

        The first of `ends` is that the client is gone: what was claimed meanwhile is handed back. A worker that is to
        end gets none, after a moment: one that does not listen shall not ask without a pause.
        """
        state = await self._live(worker, by)
        if state.draining:
            await _first(asyncio.sleep(min(wait, POLL_INTERVAL_S), None), ends)
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
        gone = next(iter(ends), None)
        until = time.monotonic() + wait
        with self._poll(worker, request, tenant) as poll:
            # Taken in while it is fresh: old news would have the claim search among what is long claimed.
            news = await poll.subscription.wait(0)
            while not any(end.done() for end in ends):
                poll.claims.on_ready(news)
                jobs = await poll.claims.claim(request.limit)
                if jobs and gone is not None and gone.done():
                    await self._settle([Report(job, Interrupted()) for job in jobs])
                    return []
                left = until - time.monotonic()
                if jobs or left <= 0:
                    poll.subscription.reset()
                    return jobs
                timeout = min(left, POLL_INTERVAL_S, poll.claims.recheck_delay())
                news = await _first(poll.subscription.wait(timeout), ends)
        return []

    async def renew(self, worker: WorkerId, lease: Duration, *, by: str | None, **report: Unpack[WorkerReport]) -> bool:
        """Prolong a lease that lives, and hear whether its worker is to end; `LeaseLost` when it does not live."""
        state = await self._live(worker, by)
        if not await self._store.single(lambda tx: tx.renew(worker, lease, **report)):
            raise _lost(worker)
        self._registry.beat(worker, lease)
        return state.draining or report.get("draining", False)

    async def lost(self, held: Collection[HeldJob], worker: WorkerId, *, by: str | None) -> set[JobId]:
        """Those of `held` that the worker does not hold any more."""
        await self._known(worker, by)
        return await self._store.single(lambda tx: tx.lost(held)) if held else set()

    async def held(self, worker: WorkerId, limit: int, *, by: str | None) -> list[Job]:
        """What a worker holds."""
        await self._known(worker, by)
        return await self._store.run(lambda tx: tx.held_by(worker, limit))

    async def settle(self, worker: WorkerId, results: Sequence[AttemptResult], *, by: str | None) -> set[JobId]:
        """Report what came of attempts; which reports took effect, or had done so before: it is safe to repeat."""
        await self._known(worker, by)
        named = {result.id: result for result in results}
        if len(named) < len(results):
            raise Invalid("a job stands twice among the outcomes: report each once", pointer="/outcomes")
        jobs = await self._read(named)
        reports = [
            Report(job, result.outcome, result.logs)
            for job in jobs
            if job.status is Status.RUNNING and (result := named[job.id]).fence == job.fence and job.worker == worker
        ]
        done = await self._settle(reports) if reports else set()
        if len(done) < len(named):
            again = await self._read(named.keys() - done)
            done |= {job.id for job in again if _was_settled(job, named[job.id], worker)}
        return done

    async def depart(self, worker: WorkerId, *, by: str | None) -> bool:
        """Strike a worker; False when it still holds jobs."""
        await self._known(worker, by)
        return await self._workers.depart(worker)

    async def steps(self, held: HeldJob, *, by: str | None) -> list[Step]:
        """What earlier attempts of a job recorded that the worker holds."""
        if await self.lost([held], held.worker, by=by):
            raise _taken(held)
        return await steps.recorded(self._store, held.id)

    async def job(self, held: HeldJob, *, by: str | None) -> Job:
        """A job that the worker holds; `LeaseLost` when it does not."""
        if await self.lost([held], held.worker, by=by):
            raise _taken(held)
        found = await self._store.single(lambda tx: tx.get([held.id]))
        if not found:
            raise _taken(held)
        return found[0]

    async def record_step(self, held: HeldJob, step: Step, *, by: str | None) -> None:
        """Record a step; `LeaseLost` when the job is not the worker's any more."""
        await self._known(held.worker, by)
        if not await steps.record(self._store, held, step):
            raise _taken(held)

    async def save_progress(self, held: HeldJob, progress: bytes, *, by: str | None) -> None:
        """Keep how far a job is; `LeaseLost` when it is not the worker's any more."""
        await self._known(held.worker, by)
        if not await steps.save_progress(self._store, held, progress):
            raise _taken(held)

    def close(self) -> None:
        """Hear no more."""
        for poll in self._poll_states.values():
            poll.subscription.close()
        self._poll_states.clear()

    async def _live(self, worker: WorkerId, by: str | None) -> LeaseState:
        """How the lease of a worker stands that lives."""
        state = await self._known(worker, by)
        if state.left <= 0:
            raise _lost(worker)
        return state

    async def _known(self, worker: WorkerId, by: str | None) -> LeaseState:
        """How the lease of a worker stands that is the caller's.

        One whose lease ran out may still settle what nobody has taken from it.
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
            poll.left_at = time.monotonic()
            self._clear_away(poll.left_at)

    def _clear_away(self, now: float) -> None:
        """Forget polls that nobody has used for a while, and the oldest when there are too many."""
        spare = len(self._poll_states) - MAX_POLL_STATES
        for key, poll in list(self._poll_states.items()):
            if poll.polls:
                continue
            if spare <= 0 and poll.left_at > now - POLL_STATE_RETENTION_S:
                return
            spare -= 1
            poll.subscription.close()
            del self._poll_states[key]


def _was_settled(job: Job, result: AttemptResult, worker: WorkerId) -> bool:
    """Whether a job looks as this report would have left it: its answer was lost, and it was sent again."""
    holder = worker if job.status.terminal else None
    return job.fence == result.fence and job.worker == holder and job.status in _COMES_TO[type(result.outcome)]


async def _first(
    news: Awaitable[list[LaneReady] | None], ends: Collection[asyncio.Future[Any]]
) -> list[LaneReady] | None:
    """The news, or None when something ends before there are any."""
    waiting = asyncio.ensure_future(news)
    try:
        everything: set[asyncio.Future[Any]] = {waiting, *ends}
        await asyncio.wait(everything, return_when=asyncio.FIRST_COMPLETED)
        return waiting.result() if waiting.done() else None
    finally:
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting


def _lost(worker: WorkerId) -> LeaseLost:
    return LeaseLost(f"there is no lease of a worker {worker_name(worker)!r}: stop what it runs, and register anew")


def _taken(held: HeldJob) -> LeaseLost:
    return LeaseLost(f"job {held.id} is not this worker's any more, or was never: stop it, nothing it does counts")
