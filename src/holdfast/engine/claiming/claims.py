"""Claim jobs for one worker: fairly across lanes, within limits, under its lease."""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence

from holdfast.engine.claiming.dispatch_settings import DispatchSettingsCache, EffectiveSettings
from holdfast.engine.claiming.limited import LimitedClaim
from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.lane import FREED, Lane, LaneReady, Share
from holdfast.model.limit import LimitKind, LimitName
from holdfast.model.time import Duration, in_seconds
from holdfast.policy.fairness.drr import FLOOR_LAG_S, Allocation, Blocked, DeficitRoundRobin, LaneResult
from holdfast.policy.limits import LimitedShares, lane_limits
from holdfast.store.port.store import Store, Tx

MAX_LANES = 20_000
"""Lanes read by one scan; later scans find the rest."""

LIMIT_RECHECK_INTERVAL_S = 0.25
"""Re-check a full limit after this long without a notification; bounds the cost of a lost one."""


class Claims:
    """Claims of one worker. Tasks of its event loop may claim concurrently."""

    def __init__(
        self,
        store: Store,
        worker: WorkerId,
        queues: Sequence[str],
        types: Sequence[str] | None,
        *,
        tenant: str | None = None,
    ) -> None:
        self.worker = worker
        self._tenant = tenant
        """Tenant to claim for; None: all tenants."""
        self._store = store
        self._queues = list(queues)
        self._types = None if types is None else list(types)
        self._settings = DispatchSettingsCache(store)
        self._limited = LimitedClaim(store, worker)
        self._rotation = DeficitRoundRobin()
        self._paused = EffectiveSettings().paused
        """Pauses that were in effect when the lanes were chosen."""
        self._looking = asyncio.Lock()
        self._shut: dict[LimitName, float] = {}
        """Full limits, and when to check them again."""

    async def claim(self, slots: int) -> list[Job]:
        """Claim at most `slots` jobs; none if nothing may run or the lease is gone."""
        if await self._settings.refresh():
            self._go_by(self._settings.view)
        self._reopen()
        rotation = self._rotation
        await self._look(rotation)
        if all(_limit(queue) in self._shut for queue in self._queues):
            return []
        while shares := rotation.allot(slots, self._shut_lanes()):
            if jobs := await self._claim(rotation, shares, slots):
                return jobs
        return []

    def patience(self) -> float:
        """Return the seconds until a full limit is checked again without a notification."""
        return max(0.0, min(self._shut.values(), default=float("inf")) - time.monotonic())

    def stop(self) -> None:
        """Do nothing: a claim in flight completes."""

    def heard(self, news: Iterable[LaneReady] | None) -> None:
        """Process the notifications of a subscription."""
        if news is None:
            return
        named = list(news)
        freed = {each.lane.queue for each in named if each.lane.tenant == FREED}
        if freed:
            self._reopen(freed)
        self._rotation.on_ready(self._open([each for each in named if each.lane.tenant != FREED]))
        if not named:
            self._rotation.request_scan()

    def _go_by(self, view: EffectiveSettings) -> None:
        if view.paused == self._paused:
            self._rotation.set_weights(view.weights)
        else:  # drop paused lanes and scan for resumed ones
            self._rotation = DeficitRoundRobin(view.weights)
            self._paused = view.paused
        for name in list(self._shut):
            self._shut[name] = float("-inf")  # the limit may have changed

    def _reopen(self, freed: Collection[str] = ()) -> None:
        """Unblock limits that are due for a check or whose queue released capacity."""
        now = time.monotonic()
        for name, until in list(self._shut.items()):
            if until <= now or (freed and (name.kind is LimitKind.TENANT or name.name in freed)):
                del self._shut[name]
                self._rotation.unblock(_lanes_of(name))

    def _shut_lanes(self) -> Collection[Blocked]:
        return {_lanes_of(name) for name in self._shut} if self._shut else ()

    async def _claim(self, rotation: DeficitRoundRobin, shares: Allocation, slots: int) -> list[Job]:
        limited = self._settings.view.limited
        names = {name for share in shares for name in lane_limits(share.lane)} & limited if limited else ()
        try:
            if names:
                jobs, admitted = await self._limited.claim(
                    names, shares, slots, lambda tx, shares, counting: self._take(tx, shares, slots, counting)
                )
            else:
                jobs = await self._store.single(lambda tx: self._take(tx, shares, slots))
                admitted = LimitedShares(shares, {})
        except BaseException:
            rotation.on_failed(shares)
            raise
        # A late commit lowers the floor by its news, where those of other nodes come by themselves. Lost news cost as
        # much as ever: until the next look.
        lag = 0.0 if self._store.has_push else FLOOR_LAG_S
        asked = shares if admitted.shares is shares else Allocation(admitted.shares, shares.allotted_at)
        rotation.on_claimed(asked, _by_lane(jobs), slots, time.monotonic(), lag=lag)
        if asked is not shares:
            lanes = {share.lane for share in asked}
            rotation.on_failed(Allocation((share for share in shares if share.lane not in lanes), shares.allotted_at))
            self._close(admitted.full)
        return jobs

    async def _take(
        self, tx: Tx, shares: Sequence[Share], slots: int, counting: Collection[LimitName] = ()
    ) -> list[Job]:
        resting = self._settings.view.types
        types = self._types
        if types is not None and resting:
            types = [each for each in types if each not in resting]
        without = sorted(resting) if types is None else ()
        return await tx.claim(self.worker, shares, slots, types, without=without, counting=counting)

    def _close(self, shut: dict[LimitName, Duration | None]) -> None:
        now = time.monotonic()
        for name, wait in shut.items():
            self._shut[name] = now + (
                LIMIT_RECHECK_INTERVAL_S if wait is None else min(LIMIT_RECHECK_INTERVAL_S, in_seconds(wait) + 0.001)
            )

    async def _look(self, rotation: DeficitRoundRobin) -> None:
        if not rotation.scan_due(time.monotonic()):
            return
        if self._looking.locked() and len(rotation):
            return  # a scan may be slow; concurrent claims use the known lanes
        async with self._looking:
            began = time.monotonic()
            if not rotation.scan_due(began):
                return
            queues = self._settings.open(self._queues)
            found = await self._store.single(lambda tx: tx.lanes(queues, MAX_LANES)) if queues else []
            ended = time.monotonic()
            rotation.on_scan(self._open(found), ended, ended - began, complete=len(found) < MAX_LANES)

    def _open(self, news: list[LaneReady]) -> list[LaneReady]:
        """Return the notifications of lanes that this worker may claim from."""
        view = self._settings.view
        if view.queues or view.tenants:
            news = [each for each in news if not view.is_paused(each.lane.queue, each.lane.tenant)]
        return news if self._tenant is None else [each for each in news if each.lane.tenant == self._tenant]


def _limit(queue: str) -> LimitName:
    return LimitName(LimitKind.QUEUE, "", queue)


def _lanes_of(name: LimitName) -> Blocked:
    return ("queue" if name.kind is LimitKind.QUEUE else "tenant", name.name)


def _by_lane(jobs: Sequence[Job]) -> dict[Lane, LaneResult]:
    seen: dict[tuple[str, str, int], list[int]] = {}
    for job in jobs:  # hot path: allocate little
        key = (job.queue, job.tenant, job.priority)
        here = seen.get(key)
        if here is None:
            seen[key] = [1, job.seq, job.cost]
        else:
            here[0] += 1
            here[1] = max(here[1], job.seq)
            here[2] += job.cost
    return {Lane(*key): LaneResult(*here) for key, here in seen.items()}
