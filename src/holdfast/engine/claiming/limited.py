"""Claims under concurrency and rate limits, counted in the transaction of the claim.

The pessimistic claim locks the limits first and claims what fits; other transactions that start or end a job under
them wait. If every limit recently had ample room, the optimistic claim takes jobs first and locks the limits last, so
that the locks are held briefly. If the jobs do not fit after all, it rolls back and the pessimistic claim follows.
"""

import time
from collections.abc import Collection, Sequence
from typing import NamedTuple

from holdfast.engine.limits import is_unsettled
from holdfast.errors import Contention
from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.lane import Share
from holdfast.model.limit import Limit, LimitKind, LimitName
from holdfast.model.time import Duration, Instant, in_seconds, seconds
from holdfast.policy.limits import admit, counting_limits, fits, reserve
from holdfast.store.port.store import Store, Tx

SETTLES_AFTER = seconds(5)
"""Age of a limit by which every worker knows it and counts each job that it starts."""

OPTIMISTIC_ROOM_FACTOR = 4
"""Claim optimistically if each limit had room for this many claims."""

RECHECK_INTERVAL_S = 0.25
"""Recheck a full limit after this long without a notification, which may be lost."""


class ClaimQuery(NamedTuple):
    """Jobs that a worker claims, before limits."""

    worker: WorkerId
    shares: Sequence[Share]
    slots: int
    types: Sequence[str] | None
    """None: any type."""
    without: Sequence[str] = ()
    """Types to skip."""


class LimitedClaim(NamedTuple):
    """Result of a claim under limits."""

    jobs: list[Job]
    shares: Sequence[Share]
    """Shares that the limits allowed."""
    full: dict[LimitName, Duration | None]
    """Limits without room, and the time until they have some; None if a job must end first."""
    saved: Sequence[Limit] = ()
    """Limits that the claim changed."""
    at: Instant = Instant(0)


class LimitTracker:
    """Limits as one worker knows them from its latest claims: free room, and which are full."""

    def __init__(self) -> None:
        self._room: dict[LimitName, int] = {}
        self._counting: frozenset[LimitName] = frozenset()
        """Limits that count running jobs."""
        self._full: dict[LimitName, float] = {}
        """Full limits, and when to check them again."""

    @property
    def full(self) -> Collection[LimitName]:
        """Limits without room."""
        return self._full.keys()

    def has_ample_room(self, names: Collection[LimitName], slots: int) -> bool:
        """Return True if a claim of this size will probably fit all limits."""
        return all(self._room.get(name, 0) >= OPTIMISTIC_ROOM_FACTOR * slots for name in names)

    def counting(self, names: Collection[LimitName]) -> frozenset[LimitName]:
        """Return the limits among `names` that count running jobs."""
        return self._counting & frozenset(names)

    def forget_room(self) -> None:
        """Make the next claims pessimistic."""
        self._room.clear()

    def update(self, claim: LimitedClaim) -> None:
        """Update the limits after a claim was committed."""
        self._room |= {limit.of: 0 if is_unsettled(limit) else limit.room(claim.at) for limit in claim.saved}
        self._counting = (self._counting - {limit.of for limit in claim.saved}) | counting_limits(claim.saved)
        now = time.monotonic()
        for name, wait in claim.full.items():
            delay = RECHECK_INTERVAL_S if wait is None else min(RECHECK_INTERVAL_S, in_seconds(wait) + 0.001)
            self._full[name] = now + delay

    def recheck_delay(self) -> float:
        """Return the seconds until a full limit is to be checked again."""
        return max(0.0, min(self._full.values(), default=float("inf")) - time.monotonic())

    def recheck_all(self) -> None:
        """Check every full limit at the next claim, because the limits may have changed."""
        self._full = dict.fromkeys(self._full, float("-inf"))

    def pop_unblocked(self, freed_queues: Collection[str] = ()) -> list[LimitName]:
        """Remove and return the full limits to recheck: those due, or whose queue released capacity."""
        now = time.monotonic()
        unblocked = [
            name
            for name, due in self._full.items()
            if due <= now or (freed_queues and (name.kind is LimitKind.TENANT or name.name in freed_queues))
        ]
        for name in unblocked:
            del self._full[name]
        return unblocked


async def claim_within_limits(
    store: Store, query: ClaimQuery, names: Collection[LimitName], limits: LimitTracker
) -> LimitedClaim:
    """Claim jobs under the limits with these names, and update `limits`."""
    claim: LimitedClaim | None = None
    if limits.has_ample_room(names, query.slots):
        counting = limits.counting(names)
        try:
            claim = await store.run(lambda tx: _claim_optimistically(tx, query, names, counting))
        except _NoRoom:
            limits.forget_room()
    if claim is None:
        claim = await store.run(lambda tx: _claim_pessimistically(tx, query, names))
    limits.update(claim)
    return claim


class _NoRoom(Contention):
    """Optimistically claimed jobs do not fit; the transaction rolls back."""


async def _claim_optimistically(
    tx: Tx, query: ClaimQuery, names: Collection[LimitName], counting: frozenset[LimitName]
) -> LimitedClaim:
    jobs = await tx.claim(
        query.worker, query.shares, query.slots, query.types, without=query.without, counting=counting
    )
    if not jobs:
        return LimitedClaim([], query.shares, {})
    limits, now = await tx.lock_limits(query.worker, names) or ([], Instant(0))
    if not fits(jobs, limits, counting, now) or any(map(is_unsettled, limits)):
        raise _NoRoom("a limit has less room than a moment ago; try again")
    reserved = reserve(limits, jobs, now)
    await tx.save_limits(reserved)
    return LimitedClaim(jobs, query.shares, {}, reserved, now)


async def _claim_pessimistically(tx: Tx, query: ClaimQuery, names: Collection[LimitName]) -> LimitedClaim:
    locked = await tx.lock_limits(query.worker, names)
    if locked is None:  # the lease is gone
        return LimitedClaim([], [], dict.fromkeys(names))
    limits, now = [limit for limit in locked[0] if limit.is_set], locked[1]
    uncounted = {limit.of: await tx.uncounted(limit.of) for limit in limits if is_unsettled(limit)}
    shares, full = admit(query.shares, limits, now, uncounted)
    jobs: list[Job] = []
    if shares:
        counting = counting_limits(limits)
        jobs = await tx.claim(query.worker, shares, query.slots, query.types, without=query.without, counting=counting)
    settled = [_settle(limit, now, uncounted) for limit in limits]
    if not jobs and settled == limits:
        return LimitedClaim([], shares, full)
    reserved = reserve(settled, jobs, now)
    await tx.save_limits(reserved)
    return LimitedClaim(jobs, shares, full, reserved, now)


def _settle(limit: Limit, now: Instant, uncounted: dict[LimitName, int]) -> Limit:
    """Return the limit, marked as settled once it counts every running job."""
    is_old = now - limit.changed_at > SETTLES_AFTER
    return limit._replace(unsettled=False) if is_unsettled(limit) and is_old and not uncounted[limit.of] else limit
