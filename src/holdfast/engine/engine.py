"""Engine: the facade over the use cases for the API, workers and applications."""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Self, Unpack

from holdfast.coordination.in_database import in_database
from holdfast.coordination.port import Coordination
from holdfast.engine import maintenance, queues, workers
from holdfast.engine.access import Access
from holdfast.engine.batcher import Batcher
from holdfast.engine.changes.analytics import Analytics
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.deliveries import Deliveries
from holdfast.engine.jobs import actions, explain, queries, settle, steps
from holdfast.engine.jobs.actions import BulkResult
from holdfast.engine.jobs.queries import DeadLetterGroup, JobDetail
from holdfast.engine.limits import Limits
from holdfast.engine.maintenance import MaintenanceRules
from holdfast.engine.remote_workers import RemoteWorkers
from holdfast.engine.submitting import receipts
from holdfast.engine.submitting.cache import SubmissionCache
from holdfast.engine.submitting.receipts import Receipt, SubmitResult
from holdfast.engine.submitting.submitter import Submitter
from holdfast.errors import Conflict, Invalid, InvalidBatch, SchemaMismatch, Unavailable
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Count, HeldJob, Job, JobFilter, JobSpec, Page, RetryRule, SearchPage
from holdfast.model.job_type import JobType
from holdfast.model.outcome import Outcome, Report
from holdfast.model.queue import Queue
from holdfast.model.step import Step
from holdfast.model.time import Duration, Instant, days
from holdfast.model.worker import LeaseStatus, WorkerInfo, WorkerRow
from holdfast.policy import quotas
from holdfast.policy.breaker import BreakerRules
from holdfast.policy.lifecycle import Action
from holdfast.store.port.store import Retention, Session, Store, Subscription
from holdfast.telemetry.emit import Emit, log_event
from holdfast.telemetry.events import Event

MAX_BATCH_SIZE = 10_000
_SETTLE_BATCH_SIZE = 500


class EngineRules(NamedTuple):
    """The defaults of an installation."""

    retry: RetryRule = RetryRule()
    max_attempts: int = 5
    key_retention: Duration = days(7)
    retention: Retention = Retention(history=days(7), dead=days(30))
    limits: quotas.TenantQuota = quotas.TenantQuota()
    """Default quotas of tenants that have none set."""
    breakers: BreakerRules = BreakerRules()


class Engine:
    """All use cases on one store. Belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        rules: EngineRules = EngineRules(),
        *,
        coordination: Coordination | None = None,
        rng: Callable[[], float] = random.random,
        emit: Emit = log_event,
    ) -> None:
        self.store = store
        self.rules = rules
        self.coordination = in_database(store) if coordination is None else coordination
        """State shared with other nodes in addition to the jobs."""
        self.access = Access(store, limits_changed=self.coordination.limiter.forget)
        """Tenants and API keys."""
        self.remote_workers = RemoteWorkers(store, self.settle_many, self.coordination.registry)
        """Remote workers."""
        self.limits = Limits(store)
        """Concurrency and rate limits, and pauses."""
        self.analytics = Analytics(store)
        """Job counts and statistics."""
        self.deliveries = Deliveries(store, rules.breakers, emit=self._emit_event)
        """Circuit breakers and signing keys of webhooks."""
        self._rng = rng
        self._emit = emit
        self._skew_ms = 0
        cache = SubmissionCache(
            self.coordination, now=lambda: Instant(self._now_ms() * 1_000), key_retention=rules.key_retention
        )
        self.submitter = Submitter(store, cache, key_retention=rules.key_retention, limits=rules.limits)
        """Submission of checked jobs."""
        self._settles: Batcher[Report, bool] = Batcher(self._flush_settles, largest=_SETTLE_BATCH_SIZE)

    @classmethod
    async def open(
        cls,
        store: Store,
        rules: EngineRules = EngineRules(),
        *,
        coordination: Coordination | None = None,
        rng: Callable[[], float] = random.random,
        emit: Emit = log_event,
    ) -> Self:
        """Return an engine on a store; raises `SchemaMismatch` unless its schema version fits."""
        await store.check_schema()
        engine = cls(store, rules, coordination=coordination, rng=rng, emit=emit)
        # Ids sort by the database's time, so that a node with a wrong clock does not disturb the order.
        engine._skew_ms = await store.single(lambda tx: tx.now()) // 1_000 - time.time_ns() // 1_000_000
        await engine.submitter.limited.refresh()
        return engine

    async def submit(self, spec: JobSpec) -> Receipt:
        """Submit one job; it is durable when this returns. Concurrent submissions share commits.

        Raises `RateLimited` when the tenant's rate or backlog leaves no room now, `OverLimit` when they never will.
        """
        job = receipts.check_one(spec, max_attempts=self.rules.max_attempts, at_ms=self._now_ms())
        return await self.submitter.submit(job)

    async def submit_read(self, spec: JobSpec) -> SubmitResult:
        """Submit one job decoded from JSON and return it with its receipt.

        A replayed submission returns the earlier job too.
        """
        attempts = self.rules.max_attempts
        job = receipts.check_one(spec, max_attempts=attempts, at_ms=self._now_ms(), from_json=True)
        receipt = await self.submitter.submit(job)
        if receipt.replayed:
            try:
                return SubmitResult(job, receipt, await receipts.get_earlier_job(self.store, job, receipt))
            except Conflict:
                if self.coordination.keys.off:
                    raise
                # Cached but missing: the job was deleted, or the database was restored from a backup.
                receipt = await self.submitter.submit(job, bypass_cache=True)
                if receipt.replayed:
                    return SubmitResult(job, receipt, await receipts.get_earlier_job(self.store, job, receipt))
        return SubmitResult(job, receipt)

    async def submit_many(self, specs: Sequence[JobSpec | Invalid], *, from_json: bool = False) -> list[Receipt]:
        """Submit up to 10,000 jobs in one transaction, or none: `InvalidBatch` names every fault.

        A spec that could not be decoded is passed as its `Invalid` error. `from_json`: specs come from JSON.
        """
        if len(specs) > MAX_BATCH_SIZE:
            raise InvalidBatch.too_many(len(specs), MAX_BATCH_SIZE)
        if not specs:
            return []
        attempts = self.rules.max_attempts
        jobs = receipts.check(specs, max_attempts=attempts, at_ms=self._now_ms(), from_json=from_json)
        return await self.submitter.submit_batch(jobs)

    def claims(self, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None = None) -> Claims:
        """Return a claimer of jobs in these queues (and of these types) for a worker."""
        return Claims(self.store, worker, queues, types)

    def listen(self, queues: Sequence[str]) -> Subscription:
        """Subscribe to wake-ups for these queues."""
        return self.store.listen(queues)

    async def settle(self, job: Job, outcome: Outcome) -> bool:
        """Report the outcome of an attempt; False if the caller no longer held the job."""
        return await self._settles.put(Report(job, outcome))

    async def settle_many(self, reports: Sequence[Report]) -> set[JobId]:
        """Report many outcomes and return the ids of those that took effect."""
        return await settle.settle(
            self.store, reports, default=self.rules.retry, rng=self._rng, about=Instant(self._now_ms() * 1_000)
        )

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Register a worker with a new lease and the job types it describes."""
        await workers.register(self.store, self.coordination.registry, worker, lease, described)

    async def renew(self, worker: WorkerId, lease: Duration, **told: Unpack[workers.WorkerReport]) -> LeaseStatus:
        """Renew a worker's lease and return its status; `LOST` if the lease and its jobs are gone."""
        return await workers.renew(self.store, self.coordination.registry, worker, lease, **told)

    async def depart(self, worker: WorkerId) -> bool:
        """Remove a worker that holds no jobs; False if it still holds some."""
        gone = await self.store.single(lambda tx: tx.depart(worker))
        if gone:
            self.coordination.registry.leave(worker)
        return gone

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """Return the jobs that a worker holds according to the database."""
        return await self.store.run(lambda tx: tx.held_by(worker, limit))

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        """Return the ids in `held` that were cancelled or reassigned."""
        return await self.store.single(lambda tx: tx.lost(held))

    async def workers(self) -> list[WorkerRow]:
        """Return the registered workers."""
        return await self.store.single(lambda tx: tx.workers())

    async def fleet(self) -> tuple[Instant, list[WorkerRow]]:
        """Return the time and the registered workers."""
        return await self.coordination.registry.fleet()

    async def steps(self, job_id: JobId) -> list[Step]:
        """Return the recorded steps of a job."""
        return await steps.recorded(self.store, job_id)

    async def steps_of(self, held: HeldJob) -> list[Step]:
        """Return the recorded steps of a held job."""
        return await steps.recorded(self.store, held.id)

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        """Record a step of a running job; False if the caller no longer holds it."""
        return await steps.record(self.store, held, step)

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        """Save the progress of a running job; False if the caller no longer holds it."""
        return await steps.save_progress(self.store, held, progress)

    def session(self, held: HeldJob, key: str) -> AbstractAsyncContextManager[Session]:
        """Open a transaction for a handler's statements; its step record commits with them."""
        return self.store.session(held, key)

    async def get(self, job_id: JobId) -> Job:
        """Return a job in any state; raises `NotFound`."""
        return await queries.get_job(self.store, job_id, tenant=None)

    async def detail(self, job_id: JobId, *, tenant: str | None) -> JobDetail:
        """Return a job of this tenant (None: of any) with its details; raises `NotFound`."""
        return await queries.detail(self.store, job_id, tenant=tenant)

    async def explain(self, job_id: JobId, *, tenant: str | None = None) -> Explanation:
        """Explain why a job is (not) running and when it may; raises `NotFound`."""
        return await explain.explain(self.store, self.analytics, job_id, tenant=tenant)

    async def page(self, where: JobFilter, page: Page = Page()) -> SearchPage:
        """List jobs, newest first, with bounded work: a page may be short and has a cursor."""
        return await queries.list_jobs(self.store, where, page)

    async def dead_groups(
        self, tenant: str | None, after: tuple[str, str] | None, *, limit: int
    ) -> list[DeadLetterGroup]:
        """Return dead letters grouped by tenant and error."""
        return await queries.dead_groups(self.store, tenant, after, limit=limit)

    async def act(self, action: Action, job_id: JobId, *, tenant: str | None, reason: str = "") -> None:
        """Cancel, retry or delete one job; raises `NotFound`, or `Conflict` if its state forbids it."""
        await actions.apply_to_job(self.store, action, job_id, tenant=tenant, reason=reason)

    async def apply_to_matching(
        self, action: Action, where: JobFilter, *, before: JobId | None = None, reason: str = "", dry_run: bool = False
    ) -> BulkResult:
        """Cancel, retry or delete matching jobs, up to the cap of one call; returns a cursor."""
        return await actions.apply_to_matching(self.store, action, where, before=before, reason=reason, dry_run=dry_run)

    async def apply_to_ids(
        self, action: Action, ids: Collection[JobId], where: JobFilter, *, reason: str = "", dry_run: bool = False
    ) -> BulkResult:
        """Cancel, retry or delete the given jobs that match the filter's tenant and status."""
        return await actions.apply_to_ids(self.store, action, ids, where, reason=reason, dry_run=dry_run)

    async def find(self, where: JobFilter, page: Page = Page()) -> list[Job]:
        """Return jobs, newest first."""
        return await self.store.read(lambda tx: tx.find(where, page))

    async def counts(self, where: JobFilter = JobFilter()) -> list[Count]:
        """Return the numbers of unfinished and dead jobs."""
        return await self.store.read(lambda tx: tx.counts(where))

    async def cancel(self, ids: Collection[JobId], *, reason: str) -> set[JobId]:
        """Cancel unfinished jobs and return their ids."""
        return await actions.cancel(self.store, ids, reason=reason)

    async def retry(self, ids: Collection[JobId]) -> set[JobId]:
        """Make dead, cancelled or waiting jobs ready and return their ids."""
        return await actions.retry(self.store, ids)

    async def ready(self) -> tuple[bool, bool]:
        """Return (database reachable, schema version fits)."""
        try:
            await self.store.check_schema()
        except SchemaMismatch:
            return True, False
        except Unavailable:
            return False, False
        return True, True

    async def pause(self, queue: str, *, reason: str = "", until: Instant | None = None, by: str = "") -> Queue:
        """Pause a queue on all workers until it is resumed or `until`."""
        return await queues.pause(self.store, queue, reason=reason, until=until, by=by)

    async def resume(self, queue: str, *, by: str = "") -> Queue:
        """Resume a paused queue."""
        return await queues.resume(self.store, queue, by=by)

    async def queues(self) -> tuple[Instant, list[Queue]]:
        """Return the time and the configured queues."""
        return await self.store.read(queues.at_present)

    def add_sink(self, sink: Emit) -> None:
        """Emit all further events to `sink` too."""
        first = self._emit

        def both(event: Event) -> None:
            first(event)
            sink(event)

        self._emit = both

    async def run_maintenance(self, stop: asyncio.Event) -> None:
        """Run all maintenance loops until `stop` is set."""
        rules = MaintenanceRules(self.rules.retry, self.rules.retention)
        await maintenance.run_maintenance(self.store, rules, stop=stop, emit=self._emit, rng=self._rng)

    async def run_maintenance_once(self) -> tuple[int, int]:
        """Reap and promote once; return the numbers of jobs recovered and made ready."""
        rules = MaintenanceRules(self.rules.retry, self.rules.retention)
        return await maintenance.run_once(self.store, rules, rng=self._rng)

    async def aclose(self) -> None:
        """Finish what is under way and close the store."""
        await self.analytics.aclose()
        self.remote_workers.close()
        await self.submitter.drain()
        await self._settles.drain()
        await self.coordination.aclose()
        await self.store.aclose()

    def _emit_event(self, event: Event) -> None:
        """Emit through the current sinks, including those added later."""
        self._emit(event)

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._skew_ms

    async def _flush_settles(self, reports: Sequence[Report]) -> Sequence[bool]:
        """Settle each report; reports of the same job run in order and the first valid one wins."""
        answers: list[bool] = [False] * len(reports)
        left = list(enumerate(reports))
        while left:
            batch: dict[JobId, int] = {}
            for index, report in left:
                batch.setdefault(report.job.id, index)
            done = await self.settle_many([reports[index] for index in batch.values()])
            for job_id, index in batch.items():
                answers[index] = job_id in done
            left = [(index, report) for index, report in left if batch[report.job.id] != index]
        return answers
