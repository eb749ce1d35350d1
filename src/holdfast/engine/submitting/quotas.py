"""Tenant quotas: cached set of limited tenants, and inserts that check quotas in one transaction."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.engine.submitting.unique import insert_replacing
from holdfast.errors import Contention, HoldfastError
from holdfast.model.job import InsertResult, NewJob
from holdfast.model.time import Duration
from holdfast.policy import quotas
from holdfast.policy.quotas import Demand, TenantQuota, UsageWindow
from holdfast.store.port.store import Store, Tx

REFRESH_INTERVAL_S = 1.0
"""Age after which the set is refreshed in the background."""

MAX_AGE_S = 2.0
"""Age after which callers wait for the refresh."""

MAX_LIMITED_TENANTS = 10_000
"""If more tenants have quotas, every tenant is treated as limited."""


class LimitedTenants:
    """Cached set of tenants with quotas, at most two seconds old. Belongs to one event loop.

    A stale entry costs only time, because quotas are read in the transaction itself.
    """

    def __init__(self, store: Store, *, everybody: bool, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._store = store
        self._everybody = everybody
        self._names: frozenset[str] | None = None
        """None: too many to cache."""
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    def has(self, tenant: str) -> bool | None:
        """Return True if a tenant has quotas, None if the cache is too old."""
        if self._everybody:
            return True
        if self.monotonic() - self._asked_at >= REFRESH_INTERVAL_S:
            return None
        return self._names is None or tenant in self._names

    async def among(self, tenants: frozenset[str]) -> frozenset[str]:
        """Return the tenants that have quotas; raises `Unavailable` if they cannot be read."""
        if self._everybody:
            return tenants
        age = self.monotonic() - self._asked_at
        if age >= REFRESH_INTERVAL_S:
            asking = self._ask()
            if age >= MAX_AGE_S:
                await asyncio.shield(asking)
        return tenants if self._names is None else self._names & tenants

    async def refresh(self) -> None:
        """Read the set of limited tenants."""
        # Taken before the read, because the result may be that old.
        asked_at = self.monotonic()
        names = await self._store.single(lambda tx: tx.limited_tenants(MAX_LIMITED_TENANTS + 1))
        self._names = None if len(names) > MAX_LIMITED_TENANTS else frozenset(names)
        self._asked_at = asked_at

    async def aclose(self) -> None:
        """Wait for a refresh in flight."""
        if self._asking is not None:
            await asyncio.gather(self._asking, return_exceptions=True)

    def _ask(self) -> asyncio.Task[None]:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self.refresh())
            # Retrieve the exception, because the task may have no awaiter; the next caller retries.
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._asking


class _LockedUsage(NamedTuple):
    """Quota usage of a tenant, whose row is locked."""

    tenant: str
    limits: TenantQuota
    ledger: UsageWindow
    changed: bool


async def insert_each_within_quota(
    tx: Tx, jobs: Sequence[NewJob], *, defaults: TenantQuota, key_retention: Duration
) -> list[InsertResult | HoldfastError]:
    """Insert the jobs that fit the quotas; return each row or its own rejection."""
    refused: dict[int, HoldfastError] = {}
    books: list[_LockedUsage] = []
    for tenant, indexes in sorted(_by_tenant(jobs).items()):
        asked = [quotas.demand_of([jobs[index]]) for index in indexes]
        book, answers = await _decide(tx, tenant, asked, defaults)
        refused |= {index: answer for index, answer in zip(indexes, answers, strict=True) if answer is not None}
        if book is not None:
            books.append(book)
    welcome = [job for index, job in enumerate(jobs) if index not in refused]
    rows = iter(await _insert(tx, welcome, books, key_retention))
    return [refused[index] if index in refused else next(rows) for index in range(len(jobs))]


async def insert_batch_within_quota(
    tx: Tx, jobs: Sequence[NewJob], *, defaults: TenantQuota, key_retention: Duration
) -> list[InsertResult] | HoldfastError:
    """Insert all jobs, or return the rejection.

    Commit a rejection too: it saves the backlog counts, which are expensive to repeat.
    """
    refusal: HoldfastError | None = None
    books: list[_LockedUsage] = []
    for tenant, indexes in sorted(_by_tenant(jobs).items()):
        asked = quotas.demand_of(jobs[index] for index in indexes)
        book, (answer,) = await _decide(tx, tenant, [asked], defaults)
        refusal = refusal or answer
        if book is not None:
            books.append(book)
    rows = await _insert(tx, [] if refusal else jobs, books, key_retention)
    return refusal or rows


async def _decide(
    tx: Tx, tenant: str, asked: Sequence[Demand], defaults: TenantQuota
) -> tuple[_LockedUsage | None, list[HoldfastError | None]]:
    """Decide on each demand and lock the tenant's usage until commit, if it has quotas."""
    found = await tx.lock_usage(tenant)
    limits = quotas.quota_of(found.quotas, defaults)
    if not limits.exist:
        return None, [None] * len(asked)
    if found.state is None:
        await tx.begin_usage(tenant)
        found = await tx.lock_usage(tenant)
        if found.state is None:
            raise Contention(f"the ledger of the tenant {tenant!r} keeps disappearing; try again")
    before = quotas.read(found.state)
    ledger = quotas.after_clock_step(before, found.now)
    wanted = quotas.to_count(ledger, limits, asked, found.now)
    if wanted.total or wanted.queues:
        total = await tx.tenant_backlog(tenant, (limits.backlog or 0) + 1) if wanted.total else None
        queues = (
            await tx.queue_backlogs(tenant, wanted.queues, (limits.queue_backlog or 0) + 1) if wanted.queues else {}
        )
        ledger = quotas.with_counts(ledger, limits, asked, total=total, queues=queues, now=found.now)
    answers = quotas.admit(ledger, limits, asked, found.now)
    return _LockedUsage(tenant, limits, ledger, changed=ledger is not before), answers


async def _insert(
    tx: Tx, jobs: Sequence[NewJob], books: Sequence[_LockedUsage], key_retention: Duration
) -> list[InsertResult]:
    """Insert the jobs and record their usage with their insertion time."""
    rows = await insert_replacing(tx, jobs, key_retention=key_retention) if jobs else []
    placed = _by_tenant(jobs)
    for book in books:
        ledger = book.ledger
        if indexes := placed.get(book.tenant):
            cost = quotas.demand_of(jobs[index] for index in indexes).cost
            new = Counter(jobs[index].queue for index in indexes if rows[index].repeats is None)
            ledger = quotas.record(ledger, book.limits, cost, new, rows[indexes[0]].created_at)
        if indexes or book.changed:
            await tx.save_usage(book.tenant, quotas.write(ledger))
    return rows


def _by_tenant(jobs: Sequence[NewJob]) -> dict[str, list[int]]:
    """Return the indexes of each tenant's jobs."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        places[job.tenant].append(index)
    return places
