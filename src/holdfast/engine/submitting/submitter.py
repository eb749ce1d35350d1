"""Submit jobs: validate, check quotas, deduplicate, insert by group commit, acknowledge.

Tenants without quotas share one batcher. Each limited tenant has its own batcher with one transaction in flight, so
that waiting for its row lock delays no other tenant; a semaphore caps the total.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from holdfast import tasks
from holdfast.coordination.port import RejectionCache
from holdfast.engine.batcher import Batcher
from holdfast.engine.clock import DatabaseClock
from holdfast.engine.submitting.insert import InsertRules, insert_batch, insert_each
from holdfast.engine.submitting.limited_tenants import LimitedTenants
from holdfast.engine.submitting.receipts import Receipt, SubmitResult
from holdfast.errors import Conflict, HoldfastError, Invalid, InvalidBatch, RateLimited, Unavailable
from holdfast.model.bounds import MAX_BATCH_SIZE
from holdfast.model.ids import JobId, new_job_id
from holdfast.model.job import Job, JobSpec, NewJob
from holdfast.model.time import Duration
from holdfast.policy.quotas import TenantQuota, demand_of
from holdfast.policy.submission import build_job, build_jobs
from holdfast.store.port.store import Store

FLUSH_BATCH_SIZE = 500
_LARGE_BATCH_SIZE = 500
"""Size from which a batch is validated in a thread, so that other submissions need not wait."""

_MAX_LIMITED_TRANSACTIONS = 4
"""Concurrent transactions of limited tenants; lock waits must not use up the connections."""

_TURN_TIMEOUT_S = 5.0
"""Time for which a submission of a limited tenant waits for those before it."""


class _TenantQueue:
    """Batcher of one limited tenant."""

    def __init__(self, batcher: Batcher[NewJob, Receipt]) -> None:
        self.batcher = batcher
        self.lock = asyncio.Lock()
        """Held by the transaction in flight."""
        self.users = 0


class Submitter:
    """Submits jobs. Belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        rejections: RejectionCache,
        clock: DatabaseClock,
        *,
        max_attempts: int,
        key_retention: Duration,
        default_quota: TenantQuota,
    ) -> None:
        self._store = store
        self._rejections = rejections
        self._clock = clock
        self._max_attempts = max_attempts
        self._unlimited_rules = InsertRules(key_retention)
        self._limited_rules = InsertRules(key_retention, default_quota)
        self.limited = LimitedTenants(store, all_limited=default_quota.is_limited)
        """Tenants that have quotas."""
        self.unlimited: Batcher[NewJob, Receipt] = Batcher(
            self._flush_unlimited, max_batch_size=FLUSH_BATCH_SIZE, width=3
        )
        """Batcher shared by all tenants without quotas."""
        self._queues: dict[str, _TenantQueue] = {}
        self._slots = asyncio.Semaphore(_MAX_LIMITED_TRANSACTIONS)

    async def submit(self, spec: JobSpec, *, from_json: bool = False) -> SubmitResult:
        """Submit one job; it shares a transaction with other jobs that are waiting.

        `from_json`: the spec was decoded from JSON.
        """
        job_id = new_job_id(self._clock.now_ms())
        job = build_job(spec, job_id, max_attempts=self._max_attempts, from_json=from_json)
        limited = self.limited.has(job.spec.tenant)
        if limited is None:
            limited = bool(await self.limited.among(frozenset((job.spec.tenant,))))
        if limited:
            await self._reject_early(job.spec.tenant, [job])
            async with self._tenant_queues([job.spec.tenant]) as (queue,):
                try:
                    return SubmitResult.of(job, await queue.batcher.submit(job))
                except RateLimited as error:
                    self._rejections.add(job.spec.tenant, error)
                    raise
        return SubmitResult.of(job, await self.unlimited.submit(job))

    async def submit_and_get(self, spec: JobSpec) -> SubmitResult:
        """Submit one job decoded from JSON; the result of a replayed submission has the earlier job.

        Raises `Conflict` if the earlier job no longer exists.
        """
        result = await self.submit(spec, from_json=True)
        if not result.receipt.replayed:
            return result
        earlier = await self._find(result.receipt.id)
        if earlier is None:
            raise Conflict(
                f"an earlier submission created job {result.receipt.id}, which was deleted or is past its retention: "
                f"{'try again' if spec.idempotency_key is None else 'use a new idempotency key'}"
            )
        return result._replace(earlier=earlier)

    async def submit_many(self, specs: Sequence[JobSpec | Invalid], *, from_json: bool = False) -> list[Receipt]:
        """Submit all jobs in one transaction or none; raises `InvalidBatch` with faults by index."""
        if len(specs) > MAX_BATCH_SIZE:
            raise InvalidBatch.too_many(len(specs), MAX_BATCH_SIZE)
        if not specs:
            return []
        now_ms = self._clock.now_ms()
        ids = iter([new_job_id(now_ms) for _ in specs])
        build = partial(build_jobs, specs, lambda: next(ids), max_attempts=self._max_attempts, from_json=from_json)
        jobs = build() if len(specs) < _LARGE_BATCH_SIZE else await tasks.call_in_thread(build)
        tenants = frozenset(job.spec.tenant for job in jobs)
        if limited := await self.limited.among(tenants):
            return await self._submit_limited(jobs, sorted(limited), jobs[0].spec.tenant if len(tenants) == 1 else None)
        return await insert_batch(self._store, jobs, self._unlimited_rules)

    async def drain(self) -> None:
        """Wait until no submission is in flight."""
        await self.limited.aclose()
        for batcher in [self.unlimited, *[queue.batcher for queue in self._queues.values()]]:
            await batcher.drain()

    async def _reject_early(self, tenant: str, jobs: Sequence[NewJob]) -> None:
        """Raise `RateLimited` if the database would certainly reject these jobs."""
        if rejection := await self._rejections.lookup(tenant, demand_of(jobs).cost):
            raise rejection

    async def _find(self, job_id: JobId) -> Job | None:
        found = await self._store.single(lambda tx: tx.get([job_id]))
        return found[0] if found else None

    async def _submit_limited(
        self, jobs: Sequence[NewJob], limited: Sequence[str], only_tenant: str | None
    ) -> list[Receipt]:
        """Submit a batch with jobs of limited tenants, one transaction per limited tenant at a time.

        `only_tenant`: tenant of all jobs, if it is the same, because rejections are cached by tenant.
        """
        if only_tenant is not None:
            await self._reject_early(only_tenant, jobs)
        async with self._tenant_queues(limited) as queues, self._turn(queues):
            try:
                return await insert_batch(self._store, jobs, self._limited_rules)
            except RateLimited as error:
                if only_tenant is not None:
                    self._rejections.add(only_tenant, error)
                raise

    @asynccontextmanager
    async def _turn(self, queues: Iterable[_TenantQueue]) -> AsyncIterator[None]:
        """Hold the locks of these queues, in the given order, and a slot for one transaction.

        Raises `Unavailable` if earlier submissions hold them for too long.
        """
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(_TURN_TIMEOUT_S):
                    for queue in queues:  # always in the same order, as in the database
                        await stack.enter_async_context(queue.lock)
                    await stack.enter_async_context(self._slots)
            except TimeoutError:
                raise Unavailable(
                    "earlier submissions of tenants with quotas are waiting for the database, and nothing was accepted "
                    "from this request: try again"
                ) from None
            yield

    @asynccontextmanager
    async def _tenant_queues(self, tenants: Iterable[str]) -> AsyncIterator[list[_TenantQueue]]:
        """Yield the queues of these tenants, which exist while callers use them."""
        queues = {tenant: self._queues.get(tenant) or self._add_queue(tenant) for tenant in tenants}
        for queue in queues.values():
            queue.users += 1
        try:
            yield list(queues.values())
        finally:
            for tenant, queue in queues.items():
                queue.users -= 1
                if not queue.users and queue.batcher.idle:  # a cancelled caller may leave a busy batcher
                    self._queues.pop(tenant, None)

    def _add_queue(self, tenant: str) -> _TenantQueue:
        async def flush(jobs: Sequence[NewJob]) -> Sequence[Receipt | HoldfastError]:
            async with self._turn([queue]):
                return await insert_each(self._store, jobs, self._limited_rules)

        queue = self._queues[tenant] = _TenantQueue(Batcher(flush, max_batch_size=FLUSH_BATCH_SIZE, width=1))
        return queue

    async def _flush_unlimited(self, jobs: Sequence[NewJob]) -> Sequence[Receipt | HoldfastError]:
        return await insert_each(self._store, jobs, self._unlimited_rules)
