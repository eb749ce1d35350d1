"""Claims under limits, reserved in the transaction of the claim.

The pessimistic claim locks the limits first and claims what fits; other transactions that start or end a job under
them wait. If a limit recently had ample room, the optimistic claim takes jobs first and locks the limits last, so that
the lock is held briefly. If the jobs do not fit after all, it rolls back and the pessimistic claim follows.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence

from holdfast.engine.limits import is_unsettled
from holdfast.errors import Contention
from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.lane import Share
from holdfast.model.limit import Limit, LimitName
from holdfast.model.time import Instant, seconds
from holdfast.policy.limits import LimitedShares, admit, counting, fit, reserve
from holdfast.store.port.store import Store, Tx

SETTLES_AFTER = seconds(5)
"""By this age every worker knows a new limit and counts each job that it starts."""

OPTIMISTIC_ROOM_FACTOR = 4
"""Claim optimistically if each limit had room for this many claims."""

Take = Callable[[Tx, Sequence[Share], Collection[LimitName]], Awaitable[list[Job]]]
"""Claims from these shares and marks the jobs with the limits that count them."""


class _NoRoom(Contention):
    """Optimistically claimed jobs do not fit; the transaction rolls back."""


class LimitedClaim:
    """Claims of one worker under limits."""

    def __init__(self, store: Store, worker: WorkerId) -> None:
        self._store = store
        self._worker = worker
        self._rooms: dict[LimitName, int] = {}
        """Room of each limit when it was last read: an estimate."""
        self._counting: frozenset[LimitName] = frozenset()

    async def claim(
        self, names: Collection[LimitName], shares: Sequence[Share], slots: int, take: Take
    ) -> tuple[list[Job], LimitedShares]:
        """Claim jobs; return them and the shares that the limits allowed."""
        if all(self._rooms.get(name, 0) >= OPTIMISTIC_ROOM_FACTOR * slots for name in names):
            try:
                return await self._store.run(lambda tx: self._optimistic(tx, names, shares, take))
            except _NoRoom:
                pass
        return await self._store.run(lambda tx: self._pessimistic(tx, names, shares, take))

    async def _optimistic(
        self, tx: Tx, names: Collection[LimitName], shares: Sequence[Share], take: Take
    ) -> tuple[list[Job], LimitedShares]:
        counted = self._counting & frozenset(names)
        jobs = await take(tx, shares, counted)
        if jobs:
            locked = await tx.lock_limits(self._worker, names)
            limits, now = locked or ([], Instant(0))
            if not fit(jobs, limits, counted, now) or any(map(is_unsettled, limits)):
                self._rooms.clear()
                raise _NoRoom("a limit has less room than a moment ago; try again")
            await self._save(tx, reserve(limits, jobs, now), now)
        return jobs, LimitedShares(shares, {})

    async def _pessimistic(
        self, tx: Tx, names: Collection[LimitName], shares: Sequence[Share], take: Take
    ) -> tuple[list[Job], LimitedShares]:
        locked = await tx.lock_limits(self._worker, names)
        if locked is None:
            return [], LimitedShares([], dict.fromkeys(names))
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
    """Return the limit, marked as settled once it counts every running job."""
    old = now - limit.changed_at > SETTLES_AFTER
    return limit._replace(unsettled=False) if is_unsettled(limit) and old and not uncounted[limit.of] else limit
