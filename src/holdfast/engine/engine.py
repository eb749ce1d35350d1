"""The façade over the use cases: what an API, a worker and an application hold in their hands."""

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Self, Unpack

from holdfast.coordination.in_database import in_database
from holdfast.coordination.port import Coordination
from holdfast.engine import queues as queueing
from holdfast.engine import workers
from holdfast.engine.access import Access
from holdfast.engine.batcher import Batcher
from holdfast.engine.changes.analytics import Analytics
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.deliveries import Deliveries
from holdfast.engine.dice import Dice, throw
from holdfast.engine.jobs import actions, queries
from holdfast.engine.jobs import explain as explaining
from holdfast.engine.jobs import settle as settling
from holdfast.engine.jobs import steps as stepping
from holdfast.engine.jobs.actions import Bulk
from holdfast.engine.jobs.queries import Detail, Group
from holdfast.engine.limits import Limits
from holdfast.engine.maintenance import Rules, keep_house, sweep
from holdfast.engine.remote_workers import Leases
from holdfast.engine.submitting import receipts as submitting
from holdfast.engine.submitting.cache import Shortcuts
from holdfast.engine.submitting.receipts import Receipt, Submitted
from holdfast.engine.submitting.submitter import Doors
from holdfast.errors import Conflict, Invalid, InvalidBatch, SchemaMismatch, Unavailable
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Count, Found, Held, Job, JobFilter, JobSpec, Page, RetryRule
from holdfast.model.job_type import JobType
from holdfast.model.outcome import Outcome, Report
from holdfast.model.queue import Queue
from holdfast.model.step import Step
from holdfast.model.time import Duration, Instant, days
from holdfast.model.worker import Renewed, WorkerInfo, WorkerRow
from holdfast.policy import quotas
from holdfast.policy.breaker import BreakerRules
from holdfast.policy.lifecycle import Action
from holdfast.store.port.store import Retention, Session, Store, Subscription
from holdfast.telemetry.emit import Emit, log_event
from holdfast.telemetry.events import Event

LARGEST_BATCH = 10_000
_FLUSHED_AT_ONCE = 500


class EngineRules(NamedTuple):
    """The defaults of an installation."""

    retry: RetryRule = RetryRule()
    max_attempts: int = 5
    key_retention: Duration = days(7)
    retention: Retention = Retention(history=days(7), dead=days(30))
    limits: quotas.Limits = quotas.Limits()
    """Of tenants that have none of their own."""
    breakers: BreakerRules = BreakerRules()


class Engine:
    """All use cases on one store. Belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        rules: EngineRules = EngineRules(),
        *,
        coordination: Coordination | None = None,
        dice: Dice = throw,
        emit: Emit = log_event,
    ) -> None:
        self.store = store
        self.rules = rules
        self.coordination = in_database(store) if coordination is None else coordination
        """What is shared with other nodes beside the jobs."""
        self.access = Access(store, limits_changed=self.coordination.limiter.forget)
        """Tenants and keys."""
        self.leases = Leases(store, self.settle_many, self.coordination.registry)
        """Workers that are somewhere else."""
        self.limits = Limits(store)
        """On what runs, and what rests."""
        self.analytics = Analytics(store)
        """Figures: what stands where, and what happened."""
        self.deliveries = Deliveries(store, rules.breakers, emit=self._tell)
        """Breakers of destinations, and keys of webhooks."""
        self._dice = dice
        self._emit = emit
        self._skew_ms = 0
        shortcuts = Shortcuts(
            self.coordination, now=lambda: Instant(self._now_ms() * 1_000), key_retention=rules.key_retention
        )
        self.doors = Doors(store, shortcuts, key_retention=rules.key_retention, limits=rules.limits)
        """Where jobs go in."""
        self._settles: Batcher[Report, bool] = Batcher(self._flush_settles, largest=_FLUSHED_AT_ONCE)

    @classmethod
    async def open(
        cls,
        store: Store,
        rules: EngineRules = EngineRules(),
        *,
        coordination: Coordination | None = None,
        dice: Dice = throw,
        emit: Emit = log_event,
    ) -> Self:
        """An engine on a store whose schema is the right one; raises `SchemaMismatch` otherwise."""
        await store.check_schema()
        engine = cls(store, rules, coordination=coordination, dice=dice, emit=emit)
        # Ids carry a time and sort by it: the database's, so that a node whose clock is wrong mixes nothing up.
        engine._skew_ms = await store.single(lambda tx: tx.now()) // 1_000 - time.time_ns() // 1_000_000
        await engine.doors.limited.learn()
        return engine

    async def submit(self, spec: JobSpec) -> Receipt:
        """Submit one job; durable when this returns. Goes out together with others submitted meanwhile.

        Raises `TooMany` when the tenant's rate or backlog leaves no room now, `OverLimit` when they never will.
        """
        job = submitting.check_one(spec, max_attempts=self.rules.max_attempts, at_ms=self._now_ms())
        return await self.doors.put(job)

    async def submit_read(self, spec: JobSpec) -> Submitted:
        """As `submit`, for a job that was read from JSON; answered with the job, and whether it was made earlier."""
        attempts = self.rules.max_attempts
        job = submitting.check_one(spec, max_attempts=attempts, at_ms=self._now_ms(), from_json=True)
        receipt = await self.doors.put(job)
        if receipt.repeated:
            try:
                return Submitted(job, receipt, await submitting.earlier(self.store, job, receipt))
            except Conflict:
                if self.coordination.keys.off:
                    raise
                # Remembered, but not there: deleted, or lost with what a database forgot that was restored.
                receipt = await self.doors.put(job, sure=True)
                if receipt.repeated:
                    return Submitted(job, receipt, await submitting.earlier(self.store, job, receipt))
        return Submitted(job, receipt)

    async def submit_many(self, specs: Sequence[JobSpec | Invalid], *, from_json: bool = False) -> list[Receipt]:
        """Submit up to 10,000 jobs in one transaction: all, or none and `InvalidBatch` naming every fault.

        What could not even be read is given as its fault, to be named with the others. `from_json`: they were read from
        JSON.
        """
        if len(specs) > LARGEST_BATCH:
            raise InvalidBatch.too_many(len(specs), LARGEST_BATCH)
        if not specs:
            return []
        attempts = self.rules.max_attempts
        jobs = submitting.check(specs, max_attempts=attempts, at_ms=self._now_ms(), from_json=from_json)
        return await self.doors.put_all(jobs)

    def claims(self, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None = None) -> Claims:
        """A worker's way to jobs of these queues (and types)."""
        return Claims(self.store, worker, queues, types)

    def listen(self, queues: Sequence[str]) -> Subscription:
        """Wake-ups for these queues."""
        return self.store.listen(queues)

    async def settle(self, job: Job, outcome: Outcome) -> bool:
        """Report what came of an attempt; False when the job was not the caller's any more."""
        return await self._settles.put(Report(job, outcome))

    async def settle_many(self, reports: Sequence[Report]) -> set[JobId]:
        """Report many at once; which took effect."""
        return await settling.settle(
            self.store, reports, default=self.rules.retry, dice=self._dice, about=Instant(self._now_ms() * 1_000)
        )

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Enter a worker, with a lease from now on, and what it tells of the types it handles."""
        await workers.register(self.store, self.coordination.registry, worker, lease, described)

    async def renew(self, worker: WorkerId, lease: Duration, **told: Unpack[workers.Told]) -> Renewed:
        """Prolong a worker's lease, and hear whether it is to end; `LOST` when it is gone, and all it holds with it."""
        return await workers.renew(self.store, self.coordination.registry, worker, lease, **told)

    async def depart(self, worker: WorkerId) -> bool:
        """Strike a worker that holds nothing any more."""
        gone = await self.store.single(lambda tx: tx.depart(worker))
        if gone:
            self.coordination.registry.leave(worker)
        return gone

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """What a worker holds, as the database sees it."""
        return await self.store.run(lambda tx: tx.held_by(worker, limit))

    async def lost(self, held: Collection[Held]) -> set[JobId]:
        """Those of `held` that were taken away: cancelled, or given to another."""
        return await self.store.single(lambda tx: tx.lost(held))

    async def workers(self) -> list[WorkerRow]:
        """Who is registered."""
        return await self.store.single(lambda tx: tx.workers())

    async def fleet(self) -> tuple[Instant, list[WorkerRow]]:
        """The time, and who is registered."""
        return await self.coordination.registry.fleet()

    async def steps(self, job_id: JobId) -> list[Step]:
        """What attempts of a job recorded."""
        return await stepping.recorded(self.store, job_id)

    async def steps_of(self, held: Held) -> list[Step]:
        """The same, for whoever holds the job."""
        return await stepping.recorded(self.store, held.id)

    async def record_step(self, held: Held, step: Step) -> bool:
        """Record a step of a running job; False when it is not this holder's any more."""
        return await stepping.record(self.store, held, step)

    async def save_progress(self, held: Held, progress: bytes) -> bool:
        """Keep how far a running job is; False when it is not this holder's any more."""
        return await stepping.save_progress(self.store, held, progress)

    def session(self, held: Held, key: str) -> AbstractAsyncContextManager[Session]:
        """A transaction for a handler's own statements, whose record commits with them."""
        return self.store.session(held, key)

    async def get(self, job_id: JobId) -> Job:
        """One job, wherever it stands; raises `NotFound`."""
        return await queries.one(self.store, job_id, tenant=None)

    async def detail(self, job_id: JobId, *, tenant: str | None) -> Detail:
        """One job of this tenant (None: of any) and all that is known of it; raises `NotFound`."""
        return await queries.detail(self.store, job_id, tenant=tenant)

    async def explain(self, job_id: JobId, *, tenant: str | None = None) -> Explanation:
        """Why a job of this tenant (None: of any) is (not) running, and when it may; raises `NotFound`."""
        return await explaining.explain(self.store, self.analytics, job_id, tenant=tenant)

    async def page(self, where: JobFilter, page: Page = Page()) -> Found:
        """Jobs, newest first, with a bounded amount of work: perhaps fewer than asked for, and where to go on."""
        return await queries.page(self.store, where, page)

    async def dead_groups(self, tenant: str | None, after: tuple[str, str] | None, *, limit: int) -> list[Group]:
        """Dead letters by tenant and error."""
        return await queries.dead_groups(self.store, tenant, after, limit=limit)

    async def act(self, action: Action, job_id: JobId, *, tenant: str | None, reason: str = "") -> None:
        """Cancel, retry or delete one job; raises `NotFound`, or `Conflict` when it is not in a state for that."""
        await actions.act_on_one(self.store, action, job_id, tenant=tenant, reason=reason)

    async def act_on_all(
        self, action: Action, where: JobFilter, *, before: JobId | None = None, reason: str = "", dry_run: bool = False
    ) -> Bulk:
        """Cancel, retry or delete all that match, as many as one call may; tells where to go on."""
        return await actions.act_on_all(self.store, action, where, before=before, reason=reason, dry_run=dry_run)

    async def act_on_these(
        self, action: Action, ids: Collection[JobId], where: JobFilter, *, reason: str = "", dry_run: bool = False
    ) -> Bulk:
        """Cancel, retry or delete those of these jobs that the filter's tenant and status allow."""
        return await actions.act_on_these(self.store, action, ids, where, reason=reason, dry_run=dry_run)

    async def find(self, where: JobFilter, page: Page = Page()) -> list[Job]:
        """Jobs, newest first."""
        return await self.store.read(lambda tx: tx.find(where, page))

    async def counts(self, where: JobFilter = JobFilter()) -> list[Count]:
        """How many jobs are unfinished or dead."""
        return await self.store.read(lambda tx: tx.counts(where))

    async def cancel(self, ids: Collection[JobId], *, reason: str) -> set[JobId]:
        """Cancel what is not finished; which were."""
        return await actions.cancel(self.store, ids, reason=reason)

    async def retry(self, ids: Collection[JobId]) -> set[JobId]:
        """Run dead, cancelled or waiting jobs now; which were moved."""
        return await actions.retry(self.store, ids)

    async def ready(self) -> tuple[bool, bool]:
        """Whether the database answers, and whether its schema is the right one."""
        try:
            await self.store.check_schema()
        except SchemaMismatch:
            return True, False
        except Unavailable:
            return False, False
        return True, True

    async def pause(self, queue: str, *, reason: str = "", until: Instant | None = None, by: str = "") -> Queue:
        """Have nothing of a queue claimed, on any worker, until it is resumed or `until`."""
        return await queueing.pause(self.store, queue, reason=reason, until=until, by=by)

    async def resume(self, queue: str, *, by: str = "") -> Queue:
        """Have the jobs of a queue claimed again."""
        return await queueing.resume(self.store, queue, by=by)

    async def queues(self) -> tuple[Instant, list[Queue]]:
        """The time, and the queues that something was set for."""
        return await self.store.read(queueing.at_present)

    def add_sink(self, sink: Emit) -> None:
        """Tell `sink` as well what happens from now on."""
        first = self._emit

        def both(event: Event) -> None:
            first(event)
            sink(event)

        self._emit = both

    async def keep_house(self, stop: asyncio.Event) -> None:
        """Reap, promote, prune and tend until `stop`."""
        rules = Rules(self.rules.retry, self.rules.retention)
        await keep_house(self.store, rules, stop=stop, emit=self._emit, dice=self._dice)

    async def sweep(self) -> tuple[int, int]:
        """Do once what housekeeping does all the time: how many jobs were put back, and how many made ready."""
        return await sweep(self.store, Rules(self.rules.retry, self.rules.retention), dice=self._dice)

    async def aclose(self) -> None:
        """Finish what is under way and close the store."""
        await self.analytics.aclose()
        self.leases.close()
        await self.doors.drain()
        await self._settles.drain()
        await self.coordination.aclose()
        await self.store.aclose()

    def _tell(self, event: Event) -> None:
        """To all who listen now."""
        self._emit(event)

    def _now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self._skew_ms

    async def _flush_settles(self, reports: Sequence[Report]) -> Sequence[bool]:
        """One answer each. Reports of the same job go one after the other: the first that holds decides."""
        answers: list[bool] = [False] * len(reports)
        left = list(enumerate(reports))
        while left:
            lot: dict[JobId, int] = {}
            for index, report in left:
                lot.setdefault(report.job.id, index)
            done = await self.settle_many([reports[index] for index in lot.values()])
            for job_id, index in lot.items():
                answers[index] = job_id in done
            left = [(index, report) for index, report in left if lot[report.job.id] != index]
        return answers
