"""Figures: what is asked of roll-ups, and of what was not folded into them yet."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Generic, NamedTuple, TypeVar

from holdfast.engine.changes.rollups import counted
from holdfast.engine.claiming.dispatch_settings import effective_at
from holdfast.model.change_log import ChangeEntry
from holdfast.model.time import Duration, Instant, in_seconds
from holdfast.policy import rollups
from holdfast.policy.fairness.report import Fairness, ServiceSample, fairness
from holdfast.policy.gaps import GapTracker
from holdfast.policy.rollups import ALL_TENANTS, HOURS_RETENTION, MINUTE, StatsByKey
from holdfast.store.port.change_log import Holding, RollupCursor, Standing
from holdfast.store.port.store import Store, Tx

_MAX_UNPROCESSED_ROWS = 20_000
MAX_SERVED_ROWS = 200_000
"""How many figures of tenants in steps one answer about fairness is made of."""

_FRESH = 1.0
"""Seconds an answer is given again without asking."""

_MAX_CACHE_ENTRIES = 1_000
_DUTY = 20
"""A census is asked for no more often than this many times what it takes."""

_SLOW = 0.05
"""Seconds that a census may take for somebody to wait for it; for a slower one the last is given meanwhile."""

_STALE = 60.0
"""Seconds after which an old census is not given any more while a new one is taken."""

K = TypeVar("K")
V = TypeVar("V")


class Window(NamedTuple):
    """Figures over a window that ends now: in steps of a minute, of an hour if it is long, of a day if it is longer."""

    since: Instant
    until: Instant
    step: Duration
    counted: StatsByKey

    @property
    def span(self) -> Duration:
        """How long it is."""
        return Duration(self.until - self.since)


class Shares(NamedTuple):
    """Fairness over a window that ends now."""

    since: Instant
    until: Instant
    step: Duration
    fairness: Fairness


class Census(NamedTuple):
    """How many jobs stood where, at an instant."""

    at: Instant
    standings: list[Standing]

    def of(self, tenant: str | None) -> list[Standing]:
        """Those of one tenant; None is everybody's."""
        return self.standings if tenant is None else [each for each in self.standings if each.tenant == tenant]


class Analytics:
    """Answers for one node: each is asked of the database once a second at the most, whoever wants it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._windows: CoalescingCache[tuple[str, Duration], Window] = CoalescingCache(self._ask)
        self._shares: CoalescingCache[Duration, Shares] = CoalescingCache(self._ask_shares)
        self._unfinished = ThrottledQuery(self._count_unfinished)
        self._dead = ThrottledQuery(self._count_dead)
        self._holding = ThrottledQuery(self._count_held)

    async def window(self, tenant: str | None, span: Duration) -> Window:
        """What happened in the last `span` to one tenant's jobs; None is everybody's."""
        return await self._windows.get((ALL_TENANTS if tenant is None else tenant, span))

    async def fairness(self, span: Duration) -> "Shares":
        """What tenants received in the last `span` against what they were entitled to."""
        return await self._shares.get(span)

    async def census(self) -> Census:
        """How many jobs are unfinished or dead. Older, the more there are: see `ThrottledQuery`."""
        unfinished, dead = await asyncio.gather(self._unfinished.get(), self._dead.get())
        return Census(unfinished.at, [*unfinished.standings, *dead.standings])

    async def holding(self) -> list[Holding]:
        """How many jobs each worker holds."""
        return await self._holding.get()

    async def aclose(self) -> None:
        """Stop asking."""
        for polled in (self._unfinished, self._dead, self._holding):
            await polled.aclose()

    async def _ask(self, asked: tuple[str, Duration]) -> Window:
        tenant, span = asked
        return await self._store.read(lambda tx: read_window(tx, tenant, span))

    async def _ask_shares(self, span: Duration) -> "Shares":
        census = await self._unfinished.get()
        return await self._store.read(lambda tx: read_shares(tx, span, census))

    async def _count_unfinished(self) -> Census:
        return await self._store.read(lambda tx: _census(tx, dead=False))

    async def _count_held(self) -> list[Holding]:
        return await self._store.read(lambda tx: tx.holding())

    async def _count_dead(self) -> Census:
        return await self._store.read(lambda tx: _census(tx, dead=True))


async def read_window(tx: Tx, tenant: str, span: Duration) -> Window:
    """Roll-ups of a tenant ('': of all together), and what was not yet folded, on one snapshot."""
    now = await tx.now()
    cursor = await tx.rollup_cursor()
    step = rollups.step_of(span)
    since = rollups.floor(Instant(now - span), step)
    forever = Instant(now + HOURS_RETENTION)
    known = counted(await tx.rollups(step, tenant, since, forever))
    if step != MINUTE:
        later = await tx.rollups(MINUTE, tenant, max(since, cursor.hours), forever)
        rollups.add(known, rollups.downsample(counted(later), step))
    unfolded = rollups.count(await _unfolded(tx, cursor), only=tenant)
    fresh = {place: figures for place, figures in unfolded.items() if place.at >= since}
    return Window(since, now, step, rollups.add(known, rollups.downsample(fresh, step)))


async def read_shares(tx: Tx, span: Duration, census: Census) -> Shares:
    """What was served, from roll-ups and what was not yet folded, on one snapshot; who waits, from a census."""
    now = await tx.now()
    step = rollups.step_of(span)
    since = rollups.floor(Instant(now - span), step)
    cursor = await tx.rollup_cursor()
    served = [ServiceSample(*each) for each in await tx.served(step, since, MAX_SERVED_ROWS)]
    if step != MINUTE:
        later = await tx.served(MINUTE, Instant(max(since, cursor.hours)), MAX_SERVED_ROWS)
        served += [ServiceSample(tenant, rollups.floor(at, step), cost, waited) for tenant, at, cost, waited in later]
    for place, figures in rollups.count(await _unfolded(tx, cursor)).items():
        if place.tenant != ALL_TENANTS and place.at >= since:
            served.append(
                ServiceSample(place.tenant, rollups.floor(place.at, step), figures.cost, Duration(figures.waited))
            )
    terms = await tx.dispatch_settings()
    effective = effective_at(terms, now)
    waiting: dict[str, Instant] = {}
    for each in census.standings:
        if (
            each.since is not None
            and not effective.is_paused(each.queue, each.tenant)
            and each.type not in effective.types
        ):
            waiting[each.tenant] = min(each.since, waiting.get(each.tenant, each.since))
    shares = fairness(served, waiting, terms.weights, since=since, until=now, step=step)
    return Shares(since, now, step, shares)


async def _unfolded(tx: Tx, cursor: RollupCursor) -> list[ChangeEntry]:
    seen = GapTracker.read(cursor.seq, cursor.holes)
    late = await tx.changes_at(seen.missing()) if seen.gaps else []
    return late + await tx.changes_after(seen.upto, _MAX_UNPROCESSED_ROWS)


async def _census(tx: Tx, *, dead: bool) -> Census:
    return Census(await tx.now(), await (tx.dead_census() if dead else tx.census()))


class CoalescingCache(Generic[K, V]):
    """Answers by question, each asked for once however many want it, and given again for a second."""

    def __init__(self, ask: Callable[[K], Coroutine[object, object, V]]) -> None:
        self._ask = ask
        self._known: dict[K, tuple[float, asyncio.Task[V]]] = {}

    async def get(self, question: K) -> V:
        """The answer."""
        now = time.monotonic()
        known = self._known.get(question)
        if known is None or now - known[0] > _FRESH or _failed(known[1]):
            if len(self._known) >= _MAX_CACHE_ENTRIES:
                self._known = {key: each for key, each in self._known.items() if now - each[0] <= _FRESH}
            known = self._known[question] = now, asyncio.create_task(self._ask(question))
        return await asyncio.shield(known[1])


class ThrottledQuery(Generic[V]):
    """An answer, taken when somebody asks, no more often than `_DUTY` times what it takes.

    So it is a second old at the most while there are some ten thousand jobs, and ten seconds with a million: the cost
    stays a twentieth of one connection's time.
    """

    def __init__(self, ask: Callable[[], Awaitable[V]]) -> None:
        self._ask = ask
        self._last: V | None = None
        self._taken = 0.0
        self._cost = 0.0
        self._task: asyncio.Task[V] | None = None

    async def get(self) -> V:
        """The newest there is, or a new one."""
        age = time.monotonic() - self._taken
        if self._last is not None and age <= max(_FRESH, _DUTY * self._cost):
            return self._last
        if self._task is None:
            self._task = asyncio.create_task(self._take())
        if self._last is not None and self._cost > _SLOW and age < _STALE + _DUTY * self._cost:
            return self._last
        return await asyncio.shield(self._task)

    async def aclose(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _take(self) -> V:
        began = time.monotonic()
        try:
            self._last = taken = await self._ask()
        finally:
            self._taken = time.monotonic()
            self._cost = self._taken - began
            self._task = None
        return taken


def _failed(task: asyncio.Task[V]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def rate(count: int, span: Duration) -> float:
    """How many each second."""
    return count / in_seconds(span) if span > 0 else 0.0
