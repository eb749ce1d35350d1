"""HTTP client of a node with the interface of an engine."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

from holdfast import tasks
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
from holdfast.model import decoded_job
from holdfast.model.bounds import MAX_BATCH_SIZE
from holdfast.model.breaker import DeliveryPermit
from holdfast.model.claim_check import ClaimCheck
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import HeldJob, Job, JobSpec
from holdfast.model.job_type import JobType
from holdfast.model.lane import LaneReady
from holdfast.model.outcome import Report
from holdfast.model.step import Step
from holdfast.model.time import Duration
from holdfast.model.worker import LeaseStatus, Unresponsiveness, WorkerInfo
from holdfast.sdk import calls, deliveries, worker_requests
from holdfast.sdk.responses import Response, check, read
from holdfast.sdk.sender import Sender
from holdfast.sdk.worker_requests import RemoteReceipt, Request

POLL_TIMEOUT_S = 20.0
"""Time that a claim waits at the node for a job (long poll)."""

SHORT_POLL_TIMEOUT_S = 0.5
SHORT_POLL_DURATION_S = 60.0
"""Time of short polls after the response to a claim was lost.

The worker may hold jobs that it does not know of, and looks for them between claims.
"""

STEP_RETRY_TIMEOUT_S = 60.0
"""Time for which recording a step is retried, because the step has taken effect.

A lost lease ends the handler earlier.
"""


class RemoteEngine:
    """Client with the same sub-objects as `Engine`. Belongs to one event loop."""

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
    async def open(cls, url: str, key: str | None = None, *, check: bool = True) -> "RemoteEngine":
        """Connect to the node at this URL; with `check`, raise `Unavailable` unless it responds."""
        client = Sender(url, key)
        try:
            if check:
                await client.send(Request("GET", "/healthz"), retry_timeout=0)
        except BaseException:
            await client.aclose()
            raise
        return cls(client)

    async def run_maintenance(self, stop: asyncio.Event) -> None:
        """Wait until `stop` is set: the nodes of the service run the maintenance."""
        await stop.wait()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()


class HttpJobs:
    """Jobs of the node: submit, get, explain, cancel and retry."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    async def submit(self, spec: JobSpec) -> RemoteReceipt:
        """Submit one job; it is durable when this returns."""
        return worker_requests.read_receipt(await self._client.send(worker_requests.submit(spec)))

    async def submit_many(self, specs: Sequence[JobSpec]) -> list[RemoteReceipt]:
        """Submit many jobs atomically; raises `InvalidBatch` if one of them is invalid."""
        if len(specs) > MAX_BATCH_SIZE:
            raise InvalidBatch.too_many(len(specs), MAX_BATCH_SIZE)
        if not specs:
            return []
        return worker_requests.read_receipts(await self._client.send(worker_requests.submit_many(specs)))

    async def get(self, job_id: JobId) -> Job:
        """Return one job; raises `NotFound`."""
        return worker_requests.read_job(await self._client.send(worker_requests.get(job_id)))

    async def get_decoded(self, job_id: JobId) -> decoded_job.Job:
        """Return one job as applications see it; raises `NotFound`."""
        return read(await self._client.send(worker_requests.get(job_id)), decoded_job.Job)

    async def explain(self, job_id: JobId) -> Explanation:
        """Explain why a job is (not) running; raises `NotFound`."""
        call = calls.explain(job_id)
        return call.read(await self._client.send(call.request))

    async def cancel(self, ids: Collection[JobId], *, reason: str) -> set[JobId]:
        """Cancel unfinished jobs; return the ids of those that were cancelled."""
        return {job_id for job_id in ids if await self._changed(worker_requests.cancel(job_id, reason))}

    async def retry(self, ids: Collection[JobId]) -> set[JobId]:
        """Make dead, cancelled or waiting jobs ready now; return the ids of those that changed."""
        return {job_id for job_id in ids if await self._changed(worker_requests.retry(job_id))}

    async def _changed(self, request: Request) -> bool:
        try:
            check(await self._client.send(request))
        except (Conflict, NotFound):
            return False
        return True


class HttpAttempts:
    """Attempts of workers, through the node: claims, outcomes, steps and progress."""

    def __init__(self, client: Sender) -> None:
        self._client = client
        self.on_settled: Callable[[Sequence[Report], Collection[JobId]], None] = lambda _reports, _done: None
        """Called with the reports that the node answered, and the ids of the settled jobs."""

    def claims(self, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None = None) -> "LongPollClaims":
        """Return the claims of a worker on these queues and job types."""
        return LongPollClaims(self._client, worker, queues, types)

    def listen(self, queues: Sequence[str]) -> "NoWakeups":
        """Return an empty subscription, because claims wait at the node."""
        del queues
        return NoWakeups()

    async def settle_many(self, reports: Sequence[Report]) -> set[JobId]:
        """Report outcomes of attempts; return the ids of the jobs whose report took effect."""
        done: set[JobId] = set()
        for worker, its_reports in _by_worker(reports).items():
            for request in worker_requests.settle(worker, its_reports):
                try:
                    done |= worker_requests.read_settled_jobs(await _send(self._client, request))
                except LeaseLost:
                    continue
                except Invalid as error:
                    raise Rejected(str(error)) from error
        self.on_settled(reports, done)
        return done

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """Return the jobs that the worker holds; none if it is no longer registered."""
        try:
            response = await _send(self._client, worker_requests.held(worker, limit))
            return worker_requests.read_held_jobs(response, worker)
        except LeaseLost:
            return []

    async def held_attempts(self, worker: WorkerId, limit: int) -> list[tuple[JobId, int]]:
        """Return the ids and fences of the jobs that the worker holds according to the database."""
        return [(job.id, job.fence) for job in await self.held_by(worker, limit)]

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        """Return the ids of those jobs in `held` that the worker no longer holds."""
        gone: set[JobId] = set()
        for worker in {job.worker for job in held}:
            its_jobs = [job for job in held if job.worker == worker]
            try:
                response = await _send(self._client, worker_requests.lost(worker, its_jobs))
                gone |= worker_requests.read_lost_jobs(response)
            except LeaseLost:
                gone |= {job.id for job in its_jobs}
        return gone

    async def steps_of(self, held: HeldJob) -> Sequence[Step]:
        """Return the steps that earlier attempts of a job recorded."""
        steps: list[Step] = []
        cursor: str | None = None
        while True:
            request = worker_requests.steps(held, cursor)
            response = await _send(self._client, request, retry_timeout=STEP_RETRY_TIMEOUT_S)
            page, cursor = worker_requests.read_steps(response)
            steps += page
            if cursor is None:
                return steps

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        """Record a step, with retries; return False if the job is no longer held."""
        return await self._while_held(worker_requests.record_step(held, step), retry_timeout=STEP_RETRY_TIMEOUT_S)

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        """Store the job's progress; return False if the job is no longer held."""
        return await self._while_held(worker_requests.save_progress(held, progress))

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Any]:
        """Raise `Invalid`, because a remote worker has no database connection for a transaction."""
        del held
        raise Invalid(
            f"transaction {key!r}: this worker uses HTTP and has no database connection: use ctx.step() "
            "with ctx.idempotency_key(), or run it with HOLDFAST_DATABASE_URL",
            pointer="/step",
        )

    async def _while_held(self, request: Request, *, retry_timeout: float = 0.0) -> bool:
        try:
            check(await _send(self._client, request, retry_timeout=retry_timeout))
        except LeaseLost:
            return False
        return True


class HttpWorkers:
    """Worker leases at the node."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Register a worker, its job types and a lease that starts now."""
        check(await _send(self._client, worker_requests.register(worker, lease, described)))

    async def renew(
        self,
        worker: WorkerId,
        lease: Duration,
        *,
        memory: int | None = None,
        draining: bool = False,
        unresponsive: Unresponsiveness | None = None,
    ) -> LeaseStatus:
        """Renew a lease unless it has expired; return its status, including a request to drain."""
        try:
            request = worker_requests.renew(worker, lease, memory=memory, draining=draining, unresponsive=unresponsive)
            return worker_requests.read_lease_status(await _send(self._client, request))
        except LeaseLost:
            return LeaseStatus.LOST

    async def depart(self, worker: WorkerId) -> bool:
        """Remove a worker that holds no job; return False if it holds one."""
        try:
            return worker_requests.read_departed(await _send(self._client, worker_requests.depart(worker)))
        except LeaseLost:
            return True


class HttpDeliveries:
    """Circuit breakers and signatures of webhooks, through the node."""

    def __init__(self, client: Sender) -> None:
        self._client = client

    async def before_delivery(
        self, job: Job, destination: str, *, probe_for: Duration, at: int, body: bytes
    ) -> DeliveryPermit:
        """Return whether a webhook may be sent now, and its signature."""
        request = deliveries.begin(job, destination, probe_for=probe_for, at=at, body=body)
        return deliveries.read_permit(await _send(self._client, request))

    async def after_delivery(self, job: Job, destination: str, *, probe: bool, error: str | None) -> None:
        """Report the outcome of a delivery; ignores an unavailable node and a lost lease."""
        with suppress(HoldfastError):
            check(await _send(self._client, deliveries.end(job, destination, probe=probe, error=error)))


class LongPollClaims:
    """Claims of one worker. Each waits at the node until a job is ready or the poll times out."""

    def __init__(self, client: Sender, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None) -> None:
        self._client = client
        self._worker = worker
        self._queues = queues
        self._types = types
        self._short_until = 0.0
        self._stopped = False
        self._requests: set[asyncio.Task[Response]] = set()

    async def claim(self, slots: int) -> list[Job]:
        """Claim and return at most `slots` jobs; none if the poll timed out."""
        if self._stopped:
            return []
        began = time.monotonic()
        wait = SHORT_POLL_TIMEOUT_S if began < self._short_until else POLL_TIMEOUT_S
        request = worker_requests.claim(self._worker, self._queues, self._types, min(slots, 500), wait)
        # A task, so that `stop` can end the request without cancelling the caller.
        sending = tasks.start(_send(self._client, request), name="holdfast claim", awaited=True)
        self._requests.add(sending)
        try:
            jobs = worker_requests.read_claimed_jobs(await sending)
        except OutcomeUnknown:
            self._short_until = time.monotonic() + SHORT_POLL_DURATION_S
            raise
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            return []  # `stop` cancelled the request
        finally:
            self._requests.discard(sending)
        if not jobs and (left := SHORT_POLL_TIMEOUT_S - (time.monotonic() - began)) > 0:
            await asyncio.sleep(left)  # a node that is shutting down responds at once; do not claim in a busy loop
        return jobs

    async def check(self, jobs: Sequence[Job]) -> ClaimCheck:
        """Return which of these claimed jobs were cancelled, taken away or paused since."""
        held = [HeldJob(job.id, job.fence, self._worker) for job in jobs]
        try:
            return worker_requests.read_claim_check(await _send(self._client, worker_requests.lost(self._worker, held)))
        except LeaseLost:
            return ClaimCheck({job.id for job in jobs}, set())

    def recheck_delay(self) -> float:
        """Return infinity: the node waits, so no polling is needed."""
        return float("inf")

    def on_ready(self, notifications: Iterable[LaneReady] | None) -> None:
        """Ignore wake-ups; there are none."""

    def stop(self) -> None:
        """Close the connection of a waiting claim, after which the node claims nothing for it.

        The worker holds jobs that the node claimed earlier; `held_by` lists them.
        """
        self._stopped = True
        for request in self._requests:
            request.cancel()


class NoWakeups:
    """Subscription without wake-ups, because a claim itself waits for jobs."""

    async def wait(self, timeout: float) -> list[LaneReady] | None:
        """Return at once."""
        del timeout
        return None

    @property
    def poll_interval_s(self) -> float | None:
        return None

    def reset(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


async def _send(client: Sender, request: Request, *, retry_timeout: float = 0.0) -> Response:
    """Send a request of a worker, which does its own retries.

    A rate limit counts as an unavailable node.
    """
    try:
        return await client.send(request, retry_timeout=retry_timeout)
    except RateLimited as error:
        unavailable = Unavailable(str(error))
        unavailable.retry_after = error.retry_after
        raise unavailable from error


def _by_worker(reports: Sequence[Report]) -> dict[WorkerId, list[Report]]:
    by_worker: dict[WorkerId, list[Report]] = defaultdict(list)
    for report in reports:
        by_worker[report.job.worker or WorkerId(0)].append(report)
    return by_worker
