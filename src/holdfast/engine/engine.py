"""Engine: all use cases on one store, grouped by subject."""

import asyncio
import random
from collections.abc import Callable
from typing import NamedTuple, Self

from holdfast.coordination.no_redis import NoRedis
from holdfast.coordination.port import Coordination
from holdfast.engine import maintenance
from holdfast.engine.access import Access
from holdfast.engine.attempts import Attempts
from holdfast.engine.changes.analytics import Analytics
from holdfast.engine.clock import DatabaseClock
from holdfast.engine.deliveries import Deliveries
from holdfast.engine.jobs.jobs import JobService
from holdfast.engine.limits import LimitService
from holdfast.engine.maintenance import MaintenanceRules
from holdfast.engine.queues import QueueService
from holdfast.engine.remote_workers import RemoteWorkers
from holdfast.engine.submitting.submitter import Submitter
from holdfast.engine.unknown_jobs import UnknownJobs
from holdfast.engine.workers import WorkerService
from holdfast.errors import SchemaMismatch, Unavailable
from holdfast.model.job import RetryRule
from holdfast.model.time import Duration, days
from holdfast.policy.breaker import BreakerRules
from holdfast.policy.quotas import TenantQuota
from holdfast.store.port.store import Retention, Store
from holdfast.telemetry.emit import Emit, log_event
from holdfast.telemetry.events import Event


class EngineRules(NamedTuple):
    """Defaults of an installation."""

    retry: RetryRule = RetryRule()
    max_attempts: int = 5
    key_retention: Duration = days(7)
    """Lifetime of idempotency keys."""
    retention: Retention = Retention(history=days(7), dead=days(30))
    quota: TenantQuota = TenantQuota()
    """Quota of tenants that have none of their own."""
    breakers: BreakerRules = BreakerRules()


class Engine:
    """Use cases of the API, of workers and of applications. Belongs to one event loop."""

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
        self.coordination = NoRedis() if coordination is None else coordination
        """Optional Redis: wake-ups and early rejections."""
        self._rng = rng
        self._emit = emit
        self.clock = DatabaseClock()
        self.analytics = Analytics(store)
        """Job counts and statistics."""
        self.submitter = Submitter(
            store,
            self.coordination.rejections,
            self.clock,
            max_attempts=rules.max_attempts,
            key_retention=rules.key_retention,
            default_quota=rules.quota,
        )
        self.jobs = JobService(store, self.submitter, self.analytics)
        """Submission, queries and operator actions."""
        self.attempts = Attempts(store, self.clock, retry=rules.retry, rng=rng, emit=self._emit_event)
        """Claims, outcomes, steps and progress of workers."""
        self.workers = WorkerService(store)
        """Leases, drain requests and job types of workers."""
        self.remote_workers = RemoteWorkers(store, self.workers, settle=self.attempts.settle_remote)
        """Workers that connect over HTTP."""
        self.unknown_jobs = UnknownJobs(store, self.attempts.settle_remote)
        """Jobs that remote workers hold but do not run."""
        self.queues = QueueService(store)
        """Queues and their pauses."""
        self.limits = LimitService(store)
        """Concurrency and rate limits, and pauses of job types and tenants."""
        self.access = Access(store, on_quota_changed=self.coordination.rejections.invalidate)
        """Tenants and API keys."""
        self.deliveries = Deliveries(store, rules.breakers, emit=self._emit_event)
        """Circuit breakers and signing keys of webhooks."""

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
        engine.clock.set(await store.single(lambda tx: tx.now()))
        await engine.submitter.limited.refresh()
        return engine

    async def ready(self) -> tuple[bool, bool]:
        """Return (database reachable, schema version fits)."""
        try:
            await self.store.check_schema()
        except SchemaMismatch:
            return True, False
        except Unavailable:
            return False, False
        return True, True

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
        """Reap and promote until nothing is left; return how many jobs were recovered and promoted."""
        rules = MaintenanceRules(self.rules.retry, self.rules.retention)
        return await maintenance.run_once(self.store, rules, rng=self._rng)

    async def aclose(self) -> None:
        """Finish the work in flight and close the store."""
        await self.analytics.aclose()
        self.remote_workers.close()
        await self.submitter.drain()
        await self.attempts.drain()
        await self.coordination.aclose()
        await self.store.aclose()

    def _emit_event(self, event: Event) -> None:
        """Emit through the current sinks, including those added later."""
        self._emit(event)
