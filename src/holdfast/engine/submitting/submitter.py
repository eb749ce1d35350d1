"""Submission of checked jobs by group commit.

Tenants without quotas share one batcher. Each limited tenant has its own batcher with one transaction in flight, so
that waiting for its row lock delays no other tenant; a semaphore caps the total.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from holdfast.engine.batcher import Batcher
from holdfast.engine.clock import DatabaseClock
from holdfast.engine.submitting.cache import SubmissionCache
from holdfast.engine.submitting.quotas import LimitedTenants
from holdfast.engine.submitting.receipts import (
    Receipt,
    SubmitResult,
    check,
    check_one,
    get_earlier_job,
    submit_all,
    submit_each,
)
from holdfast.errors import Conflict, HoldfastError, Invalid, InvalidBatch, RateLimited
from holdfast.model.job import JobSpec, NewJob
from holdfast.model.time import Duration
from holdfast.policy.quotas import TenantQuota
from holdfast.store.port.store import Store

MAX_BATCH_SIZE = 10_000
FLUSH_BATCH_SIZE = 500
_MAX_LIMITED_TRANSACTIONS = 4
"""Cap on concurrent transactions of limited tenants, so that lock waits cannot use up the connections."""

Flushed = Batcher[NewJob, Receipt]


class _TenantQueue:
    """Batcher of one limited tenant."""

    def __init__(self, batcher: Flushed) -> None:
        self.batcher = batcher
        self.lock = asyncio.Lock()
        self.users = 0


class Submitter:
    """Submits checked jobs. Belongs to one event loop."""

    def __init__(
        self,
        store: Store,
        cache: SubmissionCache,
        clock: DatabaseClock,
        *,
        max_attempts: int,
        key_retention: Duration,
        quota: TenantQuota,
    ) -> None:
        self._store = store
        self._cache = cache
        self._clock = clock
        self._max_attempts = max_attempts
        self._key_retention = key_retention
        self._limits = quota
        self.limited = LimitedTenants(store, everybody=quota.is_limited)
        """Tenants that have quotas."""
        self.unlimited: Flushed = Batcher(self._flush_unlimited, largest=FLUSH_BATCH_SIZE, width=3)
        """Batcher shared by all tenants without quotas."""
        self._queues: dict[str, _TenantQueue] = {}
        self._slots = asyncio.Semaphore(_MAX_LIMITED_TRANSACTIONS)

    async def submit(self, spec: JobSpec) -> Receipt:
        """Submit one job; see `Jobs.submit`."""
        job = check_one(spec, max_attempts=self._max_attempts, at_ms=self._clock.now_ms())
        return await self._submit(job)

    async def submit_and_get(self, spec: JobSpec) -> SubmitResult:
        """Submit one job decoded from JSON; see `Jobs.submit_and_get`."""
        job = check_one(spec, max_attempts=self._max_attempts, at_ms=self._clock.now_ms(), from_json=True)
        receipt = await self._submit(job)
        if receipt.replayed:
            try:
                return SubmitResult(job, receipt, await get_earlier_job(self._store, job, receipt))
            except Conflict:
                if self._cache.off:
                    raise
                # Cached but missing: the job was deleted, or the database was restored from a backup.
                receipt = await self._submit(job, bypass_cache=True)
                if receipt.replayed:
                    return SubmitResult(job, receipt, await get_earlier_job(self._store, job, receipt))
        return SubmitResult(job, receipt)

    async def submit_many(self, specs: Sequence[JobSpec | Invalid], *, from_json: bool = False) -> list[Receipt]:
        """Submit a batch atomically; see `Jobs.submit_many`."""
        if len(specs) > MAX_BATCH_SIZE:
            raise InvalidBatch.too_many(len(specs), MAX_BATCH_SIZE)
        if not specs:
            return []
        return await self._submit_batch(
            check(specs, max_attempts=self._max_attempts, at_ms=self._clock.now_ms(), from_json=from_json)
        )

    async def _submit(self, job: NewJob, *, bypass_cache: bool = False) -> Receipt:
        """Submit one job together with others that are waiting. `bypass_cache`: always ask the database."""
        limited = self.limited.has(job.tenant)
        if limited is None:
            limited = bool(await self.limited.among(frozenset((job.tenant,))))
        if not limited:
            if not bypass_cache and not self._cache.off and (known := await self._cache.lookup([job])):
                return _unwrap(known[0])
            receipt = await self.unlimited.put(job)
            self._cache.remember(job, receipt)
            return receipt
        await self._cache.reject_early(job.tenant, [job])
        async with self._tenant_queues([job.tenant]) as (queue,):
            try:
                return await queue.batcher.put(job)
            except RateLimited as error:
                self._cache.remember_rejection(job.tenant, error)
                raise

    async def _submit_batch(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Submit all jobs in one transaction, or none."""
        tenants = await self.limited.among(frozenset(job.tenant for job in jobs))
        if not tenants:
            known = await self._cache.lookup(jobs)
            if known is not None and not any(isinstance(each, HoldfastError) for each in known):
                return [_unwrap(each) for each in known]
            receipts = await submit_all(self._store, jobs, key_retention=self._key_retention)
            for job, receipt in zip(jobs, receipts, strict=True):
                self._cache.remember(job, receipt)
            return receipts
        if len(tenants) == 1:
            await self._cache.reject_early(jobs[0].tenant, jobs)
        async with self._tenant_queues(sorted(tenants)) as queues, AsyncExitStack() as stack:
            for queue in queues:  # always in the same order, as in the database
                await stack.enter_async_context(queue.lock)
            async with self._slots:
                try:
                    return await submit_all(self._store, jobs, key_retention=self._key_retention, limits=self._limits)
                except RateLimited as error:
                    if len(tenants) == 1:
                        self._cache.remember_rejection(jobs[0].tenant, error)
                    raise

    async def drain(self) -> None:
        """Wait until no submission is in flight."""
        await self.limited.aclose()
        for batcher in [self.unlimited, *[queue.batcher for queue in self._queues.values()]]:
            await batcher.drain()

    @asynccontextmanager
    async def _tenant_queues(self, tenants: Iterable[str]) -> AsyncIterator[list[_TenantQueue]]:
        """Yield the queues of these tenants, which exist while callers use them."""
        queues = {tenant: self._queues.get(tenant) or self._queue(tenant) for tenant in tenants}
        for queue in queues.values():
            queue.users += 1
        try:
            yield list(queues.values())
        finally:
            for tenant, queue in queues.items():
                queue.users -= 1
                if not queue.users and queue.batcher.idle:  # a cancelled caller may leave a busy batcher
                    self._queues.pop(tenant, None)

    def _queue(self, tenant: str) -> _TenantQueue:
        async def flush(jobs: Sequence[NewJob]) -> Sequence[Receipt | BaseException]:
            async with queue.lock, self._slots:
                return await submit_each(self._store, jobs, key_retention=self._key_retention, limits=self._limits)

        queue = self._queues[tenant] = _TenantQueue(Batcher(flush, largest=FLUSH_BATCH_SIZE, width=1))
        return queue

    async def _flush_unlimited(self, jobs: Sequence[NewJob]) -> Sequence[Receipt | BaseException]:
        return await submit_each(self._store, jobs, key_retention=self._key_retention)


def _unwrap(answer: Receipt | HoldfastError) -> Receipt:
    if isinstance(answer, HoldfastError):
        raise answer
    return answer
