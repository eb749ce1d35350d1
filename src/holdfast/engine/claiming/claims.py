"""Claim jobs for one worker: fairly across lanes, within limits, under its lease."""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence

from holdfast.engine.claiming.dispatch_settings import DispatchSettingsCache, EffectiveSettings
from holdfast.engine.claiming.limited import ClaimQuery, LimitedClaim, LimitTracker, claim_within_limits
from holdfast.model.claim_check import ClaimCheck
from holdfast.model.ids import WorkerId
from holdfast.model.job import HeldJob, Job
from holdfast.model.lane import FREED, Lane, LaneReady
from holdfast.model.limit import LimitKind, LimitName, queue_limit
from holdfast.policy.fairness.drr import FLOOR_LAG_S, Allocation, Blocked, DeficitRoundRobin, LaneResult
from holdfast.policy.limits import lane_limits
from holdfast.store.port.store import Store

MAX_LANES = 20_000
"""Lanes read by one scan; later scans find the rest."""


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
        self._limits = LimitTracker()
        self._rotation = DeficitRoundRobin()
        self._paused = EffectiveSettings().paused
        """Pauses that were in effect when the lanes were chosen."""
        self._scanning = asyncio.Lock()

    async def claim(self, slots: int) -> list[Job]:
        """Claim at most `slots` jobs; none if nothing may run or the lease is gone."""
        if await self._settings.refresh():
            self._apply_settings(self._settings.view)
        self._unblock()
        rotation = self._rotation
        await self._scan_lanes(rotation)
        if all(queue_limit(queue) in self._limits.full for queue in self._queues):
            return []
        while shares := rotation.allot(slots, self._blocked_lanes()):
            try:
                claim = await self._claim_shares(shares, slots)
            except BaseException:
                rotation.on_failed(shares)
                raise
            self._record(rotation, shares, slots, claim)
            if claim.jobs:
                return claim.jobs
        return []

    async def check(self, jobs: Sequence[Job]) -> ClaimCheck:
        """Return which of these claimed jobs were cancelled, taken away or paused since."""
        if await self._settings.refresh():
            self._apply_settings(self._settings.view)
        held = [HeldJob(job.id, job.fence, self.worker) for job in jobs]
        lost = await self._store.single(lambda tx: tx.lost(held))
        return ClaimCheck(lost, {job.id for job in jobs if self._settings.view.pauses(job)})

    def recheck_delay(self) -> float:
        """Return the seconds after which to claim again even without a wake-up."""
        return self._limits.recheck_delay()

    def stop(self) -> None:
        """Do nothing: a claim in flight completes."""

    def on_ready(self, notifications: Iterable[LaneReady] | None) -> None:
        """Process the result of a wait for wake-ups.

        Args:
            notifications: Lanes with ready jobs; empty if the lanes are not known; None if the wait timed out.
        """
        if notifications is None:
            return
        lanes = list(notifications)
        if freed_queues := {ready.lane.queue for ready in lanes if ready.lane.tenant == FREED}:
            self._unblock(freed_queues)
        self._rotation.on_ready(self._claimable([ready for ready in lanes if ready.lane.tenant != FREED]))
        if not lanes:
            self._rotation.request_scan()

    async def _claim_shares(self, shares: Allocation, slots: int) -> LimitedClaim:
        """Claim from these shares, within the limits that apply to them."""
        paused_types = self._settings.view.types
        types = self._types
        if types is not None and paused_types:
            types = [name for name in types if name not in paused_types]
        without = sorted(paused_types) if types is None else ()
        if limited := self._settings.view.limited:
            names = limited.intersection(name for share in shares for name in lane_limits(share.lane))
            if names:
                query = ClaimQuery(self.worker, shares, slots, types, without)
                return await claim_within_limits(self._store, query, names, self._limits)
        jobs = await self._store.single(lambda tx: tx.claim(self.worker, shares, slots, types, without=without))
        return LimitedClaim(jobs, shares, {})

    def _record(self, rotation: DeficitRoundRobin, shares: Allocation, slots: int, claim: LimitedClaim) -> None:
        """Charge the flows for the claimed jobs and return the shares that limits did not allow."""
        allowed = shares if claim.shares is shares else Allocation(claim.shares, shares.allotted_at)
        # A job whose transaction commits late may lie below the floor. If the store pushes notifications of other
        # nodes, the one for this job lowers the floor again, and no lag is needed; if it is lost, the next scan finds
        # the job.
        lag = 0.0 if self._store.has_push else FLOOR_LAG_S
        rotation.on_claimed(allowed, _by_lane(claim.jobs), slots, time.monotonic(), lag=lag)
        if allowed is not shares:
            lanes = {share.lane for share in allowed}
            rotation.on_failed(Allocation((share for share in shares if share.lane not in lanes), shares.allotted_at))

    def _apply_settings(self, view: EffectiveSettings) -> None:
        if view.paused == self._paused:
            self._rotation.set_weights(view.weights)
        else:  # drop paused lanes and scan for resumed ones
            self._rotation = DeficitRoundRobin(view.weights)
            self._paused = view.paused
        self._limits.recheck_all()

    def _unblock(self, freed_queues: Collection[str] = ()) -> None:
        """Serve limits again that are due for a check or whose queue released capacity."""
        for name in self._limits.pop_unblocked(freed_queues):
            self._rotation.unblock(_blocked_lanes(name))

    def _blocked_lanes(self) -> Collection[Blocked]:
        return {_blocked_lanes(name) for name in self._limits.full} if self._limits.full else ()

    async def _scan_lanes(self, rotation: DeficitRoundRobin) -> None:
        if not rotation.scan_due(time.monotonic()):
            return
        if self._scanning.locked() and len(rotation):
            return  # a scan may be slow; concurrent claims use the known lanes
        async with self._scanning:
            began = time.monotonic()
            if not rotation.scan_due(began):
                return
            queues = self._settings.open(self._queues)
            found = await self._store.single(lambda tx: tx.lanes(queues, MAX_LANES)) if queues else []
            ended = time.monotonic()
            rotation.on_scan(self._claimable(found), ended, ended - began, complete=len(found) < MAX_LANES)

    def _claimable(self, lanes: list[LaneReady]) -> list[LaneReady]:
        """Return the lanes that this worker may claim from."""
        view = self._settings.view
        if view.queues or view.tenants:
            lanes = [ready for ready in lanes if not view.is_paused(ready.lane.queue, ready.lane.tenant)]
        return lanes if self._tenant is None else [ready for ready in lanes if ready.lane.tenant == self._tenant]


def _blocked_lanes(name: LimitName) -> Blocked:
    return ("queue" if name.kind is LimitKind.QUEUE else "tenant", name.name)


def _by_lane(jobs: Sequence[Job]) -> dict[Lane, LaneResult]:
    """Return the number, furthest position and total cost of the jobs of each lane."""
    totals: dict[tuple[str, str, int], list[int]] = {}
    for job in jobs:  # hot path: allocate little
        key = (job.queue, job.tenant, job.priority)
        total = totals.get(key)
        if total is None:
            totals[key] = [1, job.seq, job.cost]
        else:
            total[0] += 1
            total[1] = max(total[1], job.seq)
            total[2] += job.cost
    return {Lane(*key): LaneResult(*total) for key, total in totals.items()}
