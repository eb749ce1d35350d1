"""An engine that is somewhere else: what applications and workers ask of one, over HTTP."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from holdfast.errors import (
    Conflict,
    HoldfastError,
    Invalid,
    InvalidBatch,
    LeaseLost,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    Rejected,
    Unavailable,
)
from holdfast.model.breaker import DeliveryPermit
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import HeldJob, Job, JobSpec
from holdfast.model.job_type import JobType
from holdfast.model.lane import LaneReady
from holdfast.model.outcome import Report
from holdfast.model.step import Step
from holdfast.model.time import Duration
from holdfast.model.worker import LeaseStatus, WorkerInfo
from holdfast.sdk import calls, deliveries, worker_requests
from holdfast.sdk.async_client import Sender
from holdfast.sdk.responses import Response, check
from holdfast.sdk.worker_requests import Receipt, Request

POLL = 20.0
"""Seconds that a claim waits at the node for a job."""

UNSURE_FOR = 60.0
"""Seconds after a claim's answer was lost in which claims wait but shortly: the worker looks for what it took."""
SHORT_POLL = 0.5

STEP_PATIENCE = 60.0
"""Seconds that a step is tried to be recorded for while the node is away: its effect has happened. A lease that is
lost ends the handler before."""

MAX_BATCH_SIZE = 10_000


class Remote:
    """Client with the same sub-objects as `Engine`, over one connection pool. Belongs to one event loop."""

    def __init__(self, client: Sender) -> None:
        self._client = client
        self.jobs = HttpJobs(client)
        """Interface of applications."""
        self.attempts = HttpAttempts(client)
        """Interface of worker processes."""
        self.workers = HttpWorkers(client)
        """Interface of supervisors."""
        self.deliveries = HttpDeliveries(client)
        """Interface of webhook handlers."""

    @classmethod
    async def open(cls, url: str, key: str | None = None, *, check: bool = True) -> "Remote":
        """The node at this URL; `check`: raises `Unavailable` unless it answers."""
        client = Sender(url, key)
        try:
            if check:
                await client.send(Request("GET", "/healthz"), patience=0)
        except BaseException:
            await client.aclose()
            raise
        return cls(client)

    async def run_maintenance(self, stop: asyncio.Event) -> None:
        """The nodes of the service do that."""
        await stop.wait()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()


class HttpJobs:
    """Jobs of the node: submit, get, explain, cancel and retry."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    async def submit(self, spec: JobSpec) -> Receipt:
        """Submit one job; durable when this returns."""
        return worker_requests.receipt(await self._client.send(worker_requests.submit(spec)))

    async def submit_many(self, specs: Sequence[JobSpec]) -> list[Receipt]:
        """Submit many: all, or none and `InvalidBatch`."""
        if len(specs) > MAX_BATCH_SIZE:
            raise InvalidBatch.too_many(len(specs), MAX_BATCH_SIZE)
        return worker_requests.receipts(await self._client.send(worker_requests.submit_many(specs))) if specs else []

    async def get(self, job_id: JobId) -> Job:
        """One job; raises `NotFound`."""
        return worker_requests.job(await self._client.send(worker_requests.get(job_id)))

    async def explain(self, job_id: JobId) -> Explanation:
        """Why a job is (not) running; raises `NotFound`."""
        call = calls.explain(job_id)
        return call.read(await self._client.send(call.request))

    async def cancel(self, ids: Collection[JobId], *, reason: str) -> set[JobId]:
        """Cancel what is not finished; which were."""
        return {each for each in ids if await self._did(worker_requests.cancel(each, reason))}

    async def retry(self, ids: Collection[JobId]) -> set[JobId]:
        """Run dead, cancelled or waiting jobs now; which were moved."""
        return {each for each in ids if await self._did(worker_requests.retry(each))}

    async def _did(self, request: Request) -> bool:
        try:
            check(await self._client.send(request))
        except (Conflict, NotFound):
            return False
        return True


class HttpAttempts:
    """Attempts of workers, through the node: claims, outcomes, steps and progress."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    def claims(self, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None = None) -> "Polls":
        """A way to jobs of these queues and types."""
        return Polls(self._client, worker, queues, types)

    def listen(self, queues: Sequence[str]) -> "Silence":
        """Wake-ups: there are none, for claims wait at the node."""
        del queues
        return Silence()

    async def settle_many(self, reports: Sequence[Report]) -> set[JobId]:
        """Report what came of attempts; which reports took effect."""
        done: set[JobId] = set()
        for worker, lot in _by_worker(reports).items():
            for request in worker_requests.settle(worker, lot):
                try:
                    done |= worker_requests.settled(await _ask(self._client, request))
                except LeaseLost:
                    continue
                except Invalid as error:
                    raise Rejected(str(error)) from error
        return done

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """What the worker holds; none when it is not registered any more."""
        try:
            return worker_requests.holdings(await _ask(self._client, worker_requests.held(worker, limit)), worker)
        except LeaseLost:
            return []

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        """Those of `held` that were taken away meanwhile."""
        gone: set[JobId] = set()
        for worker in {each.worker for each in held}:
            its = [each for each in held if each.worker == worker]
            try:
                gone |= worker_requests.taken_away(await _ask(self._client, worker_requests.lost(worker, its)))
            except LeaseLost:
                gone |= {each.id for each in its}
        return gone

    async def steps_of(self, held: HeldJob) -> Sequence[Step]:
        """What earlier attempts recorded."""
        return worker_requests.recorded(await _ask(self._client, worker_requests.steps(held), patience=STEP_PATIENCE))

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        """Record a step; False when the job is not this holder's any more. Tries again while the node is away."""
        return await self._kept(worker_requests.record_step(held, step), patience=STEP_PATIENCE)

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        """Keep how far the job is; False when it is not this holder's any more."""
        return await self._kept(worker_requests.save_progress(held, progress))

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Any]:
        """Refused: there is no database here that a transaction could be in."""
        del held
        raise Invalid(
            f"transaction {key!r}: this worker reaches its jobs over HTTP and has no database at hand: use ctx.step() "
            "with ctx.idempotency_key(), or run it with HOLDFAST_DATABASE_URL",
            pointer="/step",
        )

    async def _kept(self, request: Request, *, patience: float = 0.0) -> bool:
        try:
            check(await _ask(self._client, request, patience=patience))
        except LeaseLost:
            return False
        return True


class HttpWorkers:
    """Worker leases at the node."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Enter a worker, with a lease from now on, and what it tells of the types it handles."""
        check(await _ask(self._client, worker_requests.register(worker, lease, described)))

    async def renew(
        self, worker: WorkerId, lease: Duration, *, memory: int | None = None, draining: bool = False
    ) -> LeaseStatus:
        """Prolong a lease that lives, and hear whether its worker is to end."""
        try:
            return worker_requests.renewed(
                await _ask(self._client, worker_requests.renew(worker, lease, memory=memory, draining=draining))
            )
        except LeaseLost:
            return LeaseStatus.LOST

    async def depart(self, worker: WorkerId) -> bool:
        """Strike a worker that holds nothing any more."""
        try:
            return worker_requests.departed(await _ask(self._client, worker_requests.depart(worker)))
        except LeaseLost:
            return True


class HttpDeliveries:
    """Circuit breakers and signatures of webhooks, through the node."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    async def before_delivery(
        self, job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes
    ) -> DeliveryPermit:
        """Whether a webhook may go out now, and its signature."""
        asked = deliveries.begin(job, destination, probe_for=probe_for, at=at, body=body)
        return deliveries.cleared(await _ask(self._client, asked))

    async def after_delivery(self, job: Job, destination: str, *, probe: bool, error: str | None) -> None:
        """What came of it; not told when the node is away, or the job another's."""
        with suppress(HoldfastError):
            check(await _ask(self._client, deliveries.end(job, destination, probe=probe, error=error)))


class Polls:
    """One worker's claims: each waits at the node until there is something, or for a while."""

    def __init__(self, client: Sender, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None) -> None:
        self._client = client
        self._worker = worker
        self._queues = queues
        self._types = types
        self._unsure_until = 0.0
        self._stopped = False
        self._asking: set[asyncio.Task[Response]] = set()

    async def claim(self, slots: int) -> list[Job]:
        """At most `slots` jobs, now held by the worker; none if none became ready for a while."""
        if self._stopped:
            return []
        began = time.monotonic()
        wait = SHORT_POLL if began < self._unsure_until else POLL
        request = worker_requests.claim(self._worker, self._queues, self._types, min(slots, 500), wait)
        asking = asyncio.ensure_future(_ask(self._client, request))
        self._asking.add(asking)
        try:
            jobs = worker_requests.leased(await asking)
        except OutcomeUnknown:
            self._unsure_until = time.monotonic() + UNSURE_FOR
            raise
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            return []  # it was us who hung up
        finally:
            self._asking.discard(asking)
        if not jobs and (early := SHORT_POLL - (time.monotonic() - began)) > 0:
            await asyncio.sleep(early)  # a node that stops answers at once, and would be asked at once again
        return jobs

    def patience(self) -> float:
        """See `Claims`: the service waits, as long as it may."""
        return float("inf")

    def heard(self, news: Iterable[LaneReady] | None) -> None:
        """There are no wake-ups."""

    def stop(self) -> None:
        """Hang up: the node claims nothing for whoever is gone. What it claimed before is held, and accounted for."""
        self._stopped = True
        for asking in self._asking:
            asking.cancel()


class Silence:
    """No wake-ups: there is nothing to wait for that a claim does not wait for."""

    async def wait(self, timeout: float) -> list[LaneReady] | None:
        """At once."""
        del timeout
        return None

    def reset(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


async def _ask(client: Sender, request: Request, *, patience: float = 0.0) -> Response:
    """Send this for a worker, which knows itself how often to ask again; to be told to wait is to find nobody."""
    try:
        return await client.send(request, patience=patience)
    except RateLimited as error:
        raise Unavailable(str(error)) from error


def _by_worker(reports: Sequence[Report]) -> dict[WorkerId, list[Report]]:
    lots: dict[WorkerId, list[Report]] = defaultdict(list)
    for report in reports:
        lots[report.job.worker or WorkerId(0)].append(report)
    return lots
