"""Who has limits, and the insert that keeps them: one transaction, so that nodes cannot pass them together either."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from holdfast.engine.submitting.unique import insert
from holdfast.errors import Contention, HoldfastError
from holdfast.model.job import Inserted, NewJob
from holdfast.model.time import Duration
from holdfast.policy import quotas
from holdfast.policy.quotas import Asked, Ledger, Limits
from holdfast.store.port.store import Store, Tx

REFRESHED_AFTER = 1.0
"""Seconds after which a node asks again who has limits, while it goes by what it knows."""

KNOWN_FOR = 2.0
"""Seconds after which it does not go by it any more, and waits for the answer."""

MOST_REMEMBERED = 10_000
"""With more tenants than this that have limits of their own, all are looked up when they submit."""


class Limited:
    """Which tenants have limits, as a node remembers it for two seconds at the most. Belongs to one event loop.

    To be remembered as limited costs a tenant time and nothing else: its limits are read in the transaction itself.
    """

    def __init__(self, store: Store, *, everybody: bool, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.monotonic = monotonic
        self._store = store
        self._everybody = everybody
        self._names: frozenset[str] | None = None
        """None: too many to remember."""
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    def has(self, tenant: str) -> bool | None:
        """Whether a tenant has limits; None when that is to be asked."""
        if self._everybody:
            return True
        if self.monotonic() - self._asked_at >= REFRESHED_AFTER:
            return None
        return self._names is None or tenant in self._names

    async def among(self, tenants: frozenset[str]) -> frozenset[str]:
        """Those of these that have limits; raises `Unavailable` when that is not known."""
        if self._everybody:
            return tenants
        age = self.monotonic() - self._asked_at
        if age >= REFRESHED_AFTER:
            asking = self._ask()
            if age >= KNOWN_FOR:
                await asyncio.shield(asking)
        return tenants if self._names is None else self._names & tenants

    async def learn(self) -> None:
        """Ask who has limits."""
        # From before the question: the answer may be as old as that.
        asked_at = self.monotonic()
        names = await self._store.single(lambda tx: tx.limited_tenants(MOST_REMEMBERED + 1))
        self._names = None if len(names) > MOST_REMEMBERED else frozenset(names)
        self._asked_at = asked_at

    async def aclose(self) -> None:
        """Leave no question open."""
        if self._asking is not None:
            await asyncio.gather(self._asking, return_exceptions=True)

    def _ask(self) -> asyncio.Task[None]:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self.learn())
            # Who goes by what is known does not wait for it, and asks again.
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        return self._asking


class _Book(NamedTuple):
    """A tenant's ledger, locked."""

    tenant: str
    limits: Limits
    ledger: Ledger
    changed: bool


async def insert_each(
    tx: Tx, jobs: Sequence[NewJob], *, defaults: Limits, key_retention: Duration
) -> list[Inserted | HoldfastError]:
    """Insert those for which there is room, one after the other; the others are refused, each for its own reason."""
    refused: dict[int, HoldfastError] = {}
    books: list[_Book] = []
    for tenant, indexes in sorted(_by_tenant(jobs).items()):
        asked = [quotas.asked_for([jobs[index]]) for index in indexes]
        book, answers = await _decide(tx, tenant, asked, defaults)
        refused |= {index: answer for index, answer in zip(indexes, answers, strict=True) if answer is not None}
        if book is not None:
            books.append(book)
    welcome = [job for index, job in enumerate(jobs) if index not in refused]
    rows = iter(await _insert(tx, welcome, books, key_retention))
    return [refused[index] if index in refused else next(rows) for index in range(len(jobs))]


async def insert_all(
    tx: Tx, jobs: Sequence[NewJob], *, defaults: Limits, key_retention: Duration
) -> list[Inserted] | HoldfastError:
    """Insert all, or tell why there is no room for them.

    That is to be committed too: it was found out by counting, which is not to be done again at once.
    """
    refusal: HoldfastError | None = None
    books: list[_Book] = []
    for tenant, indexes in sorted(_by_tenant(jobs).items()):
        asked = quotas.asked_for(jobs[index] for index in indexes)
        book, (answer,) = await _decide(tx, tenant, [asked], defaults)
        refusal = refusal or answer
        if book is not None:
            books.append(book)
    rows = await _insert(tx, [] if refusal else jobs, books, key_retention)
    return refusal or rows


async def _decide(
    tx: Tx, tenant: str, asked: Sequence[Asked], defaults: Limits
) -> tuple[_Book | None, list[HoldfastError | None]]:
    """What may go in, with the tenant's ledger locked until the commit; without limits there is nothing to lock."""
    found = await tx.lock_ledger(tenant)
    limits = quotas.limits_of(found.quotas, defaults)
    if not limits.exist:
        return None, [None] * len(asked)
    if found.state is None:
        await tx.begin_ledger(tenant)
        found = await tx.lock_ledger(tenant)
        if found.state is None:
            raise Contention(f"the ledger of the tenant {tenant!r} keeps disappearing; try again")
    before = quotas.read(found.state)
    ledger = quotas.righted(before, found.now)
    wanted = quotas.to_count(ledger, limits, asked, found.now)
    if wanted.total or wanted.queues:
        total = await tx.tenant_backlog(tenant, (limits.backlog or 0) + 1) if wanted.total else None
        queues = (
            await tx.queue_backlogs(tenant, wanted.queues, (limits.queue_backlog or 0) + 1) if wanted.queues else {}
        )
        ledger = quotas.counted(ledger, limits, asked, total=total, queues=queues, now=found.now)
    answers = quotas.admit(ledger, limits, asked, found.now)
    return _Book(tenant, limits, ledger, changed=ledger is not before), answers


async def _insert(tx: Tx, jobs: Sequence[NewJob], books: Sequence[_Book], key_retention: Duration) -> list[Inserted]:
    """Insert these and enter them in the books, at the very time that they were inserted."""
    rows = await insert(tx, jobs, key_retention=key_retention) if jobs else []
    placed = _by_tenant(jobs)
    for book in books:
        ledger = book.ledger
        if indexes := placed.get(book.tenant):
            cost = quotas.asked_for(jobs[index] for index in indexes).cost
            new = Counter(jobs[index].queue for index in indexes if rows[index].repeats is None)
            ledger = quotas.book(ledger, book.limits, cost, new, rows[indexes[0]].created_at)
        if indexes or book.changed:
            await tx.save_ledger(book.tenant, quotas.write(ledger))
    return rows


def _by_tenant(jobs: Sequence[NewJob]) -> dict[str, list[int]]:
    """The places of each tenant's jobs."""
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, job in enumerate(jobs):
        places[job.tenant].append(index)
    return places
