"""Claims under limits: no more than they leave, reserved in the transaction of the claim or not at all.

There are two ways. The sure one locks the limits first, and claims what they leave. Whoever else starts or ends a job
under one of them waits meanwhile. So where there was ample room a moment ago, jobs are claimed first and the limits
locked last, for as long as it takes to write them; if they do not leave room after all, nothing was done, and the
sure way is taken.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence

from holdfast.engine.limits import is_unsettled
from holdfast.errors import Contention
from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.lane import Share
from holdfast.model.limit import Limit, LimitName
from holdfast.model.time import Instant, seconds
from holdfast.policy.limits import Admitted, admit, counting, fit, reserve
from holdfast.store.port.store import Store, Tx

SETTLES_AFTER = seconds(5)
"""A new limit is known to every worker long before: from then on nobody starts a job without counting it."""

AMPLE = 4
"""Room for so many claims is taken for enough to claim first."""

Take = Callable[[Tx, Sequence[Share], Collection[LimitName]], Awaitable[list[Job]]]
"""Claims from these shares, and marks what it took with those of these limits that count it."""


class _NoRoom(Contention):
    """What was claimed first does not fit: it is undone."""


class Reserving:
    """The claims of one worker that are under limits."""

    def __init__(self, store: Store, worker: WorkerId) -> None:
        self._store = store
        self._worker = worker
        self._rooms: dict[LimitName, int] = {}
        """What limits left when they were last seen: a guess now."""
        self._counting: frozenset[LimitName] = frozenset()

    async def claim(
        self, names: Collection[LimitName], shares: Sequence[Share], slots: int, take: Take
    ) -> tuple[list[Job], Admitted]:
        """What was claimed, and what of the shares the limits allowed."""
        if all(self._rooms.get(name, 0) >= AMPLE * slots for name in names):
            try:
                return await self._store.run(lambda tx: self._claim_first(tx, names, shares, take))
            except _NoRoom:
                pass
        return await self._store.run(lambda tx: self._lock_first(tx, names, shares, take))

    async def _claim_first(
        self, tx: Tx, names: Collection[LimitName], shares: Sequence[Share], take: Take
    ) -> tuple[list[Job], Admitted]:
        counted = self._counting & frozenset(names)
        jobs = await take(tx, shares, counted)
        if jobs:
            locked = await tx.lock_limits(self._worker, names)
            limits, now = locked or ([], Instant(0))
            if not fit(jobs, limits, counted, now) or any(map(is_unsettled, limits)):
                self._rooms.clear()
                raise _NoRoom("a limit has less room than a moment ago; try again")
            await self._save(tx, reserve(limits, jobs, now), now)
        return jobs, Admitted(shares, {})

    async def _lock_first(
        self, tx: Tx, names: Collection[LimitName], shares: Sequence[Share], take: Take
    ) -> tuple[list[Job], Admitted]:
        locked = await tx.lock_limits(self._worker, names)
        if locked is None:
            return [], Admitted([], dict.fromkeys(names))
        found, now = locked
        limits = [limit for limit in found if limit.limits]
        uncounted = {limit.of: await tx.uncounted(limit.of) for limit in limits if is_unsettled(limit)}
        admitted = admit(shares, limits, now, uncounted)
        settled = [_settled(limit, now, uncounted) for limit in limits]
        jobs = await take(tx, admitted.shares, counting(limits)) if admitted.shares else []
        if jobs or settled != limits:
            await self._save(tx, reserve(settled, jobs, now), now)
        return jobs, admitted

    async def _save(self, tx: Tx, limits: Sequence[Limit], now: Instant) -> None:
        await tx.save_limits(limits)
        self._rooms |= {limit.of: 0 if is_unsettled(limit) else limit.room(now) for limit in limits}
        self._counting = (self._counting - {limit.of for limit in limits}) | counting(limits)


def _settled(limit: Limit, now: Instant, uncounted: dict[LimitName, int]) -> Limit:
    """The limit with a note that it counts everybody, once it does."""
    old = now - limit.changed_at > SETTLES_AFTER
    return limit._replace(unsettled=False) if is_unsettled(limit) and old and not uncounted[limit.of] else limit
