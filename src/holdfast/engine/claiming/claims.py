"""Claim jobs for one worker: in turn over the lanes, within the limits, under its lease."""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence

from holdfast.engine.claiming.dispatch_settings import KnownTerms, View
from holdfast.engine.claiming.limited import Reserving
from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.lane import FREED, Lane, News, Share
from holdfast.model.limit import LimitKind, LimitName
from holdfast.model.time import Duration, in_seconds
from holdfast.policy.fairness.drr import FLOOR_TRAIL, Rotation, Round, Shut, Taken
from holdfast.policy.limits import Admitted, names_of
from holdfast.store.port.store import Store, Tx

MOST_LANES = 20_000
"""How many lanes of one queue are looked at at once; the rest has its turn when some are done."""

ASK_AGAIN = 0.25
"""Seconds after which a limit that left no room is asked again if no news came: so much lost news cost."""


class Claims:
    """One worker's claims. Any number of tasks of its event loop may claim at once."""

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
        """The only one whose lanes take part; None: all do."""
        self._store = store
        self._queues = list(queues)
        self._types = None if types is None else list(types)
        self._terms = KnownTerms(store)
        self._reserving = Reserving(store, worker)
        self._rotation = Rotation()
        self._resting = View().resting
        """What lanes of the rotation were chosen by."""
        self._looking = asyncio.Lock()
        self._shut: dict[LimitName, float] = {}
        """Limits that left no room, and when to ask again."""

    async def claim(self, slots: int) -> list[Job]:
        """At most `slots` jobs, now held by the worker; none when nothing may run or its lease is gone."""
        if await self._terms.look():
            self._go_by(self._terms.view)
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
        """Seconds after which a claim may find something though nobody told: a limit may have room."""
        return max(0.0, min(self._shut.values(), default=float("inf")) - time.monotonic())

    def stop(self) -> None:
        """Nothing waits here: a claim that is under way comes to its end."""

    def heard(self, news: Iterable[News] | None) -> None:
        """Take in a wake-up, as a subscription gave it."""
        if news is None:
            return
        named = list(news)
        freed = {each.lane.queue for each in named if each.lane.tenant == FREED}
        if freed:
            self._reopen(freed)
        self._rotation.heard(self._open([each for each in named if each.lane.tenant != FREED]))
        if not named:
            self._rotation.look_again()

    def _go_by(self, view: View) -> None:
        if view.resting == self._resting:
            self._rotation.weigh(view.weights)
        else:  # lanes that rest are forgotten, and those that do not any more are looked for
            self._rotation = Rotation(view.weights)
            self._resting = view.resting
        for name in list(self._shut):
            self._shut[name] = float("-inf")  # it may have been changed, or be gone

    def _reopen(self, freed: Collection[str] = ()) -> None:
        """Have limits asked again whose time has come, or of which something was given back."""
        now = time.monotonic()
        for name, until in list(self._shut.items()):
            if until <= now or (freed and (name.kind is LimitKind.TENANT or name.name in freed)):
                del self._shut[name]
                self._rotation.wake(_lanes_of(name))

    def _shut_lanes(self) -> Collection[Shut]:
        return {_lanes_of(name) for name in self._shut} if self._shut else ()

    async def _claim(self, rotation: Rotation, shares: Round, slots: int) -> list[Job]:
        limited = self._terms.view.limited
        names = {name for share in shares for name in names_of(share.lane)} & limited if limited else ()
        try:
            if names:
                jobs, admitted = await self._reserving.claim(
                    names, shares, slots, lambda tx, shares, counting: self._take(tx, shares, slots, counting)
                )
            else:
                jobs = await self._store.single(lambda tx: self._take(tx, shares, slots))
                admitted = Admitted(shares, {})
        except BaseException:
            rotation.gave_up(shares)
            raise
        # A late commit lowers the floor by its news, where those of other nodes come by themselves. Lost news cost as
        # much as ever: until the next look.
        trail = 0.0 if self._store.tells_news else FLOOR_TRAIL
        asked = shares if admitted.shares is shares else Round(admitted.shares, shares.asked)
        rotation.took(asked, _by_lane(jobs), slots, time.monotonic(), trail=trail)
        if asked is not shares:
            lanes = {share.lane for share in asked}
            rotation.gave_up(Round((share for share in shares if share.lane not in lanes), shares.asked))
            self._close(admitted.shut)
        return jobs

    async def _take(
        self, tx: Tx, shares: Sequence[Share], slots: int, counting: Collection[LimitName] = ()
    ) -> list[Job]:
        resting = self._terms.view.types
        types = self._types
        if types is not None and resting:
            types = [each for each in types if each not in resting]
        without = sorted(resting) if types is None else ()
        return await tx.claim(self.worker, shares, slots, types, without=without, counting=counting)

    def _close(self, shut: dict[LimitName, Duration | None]) -> None:
        now = time.monotonic()
        for name, wait in shut.items():
            self._shut[name] = now + (ASK_AGAIN if wait is None else min(ASK_AGAIN, in_seconds(wait) + 0.001))

    async def _look(self, rotation: Rotation) -> None:
        if not rotation.sweep_due(time.monotonic()):
            return
        if self._looking.locked() and len(rotation):
            return  # a look may be slow; the others claim meanwhile from the lanes that are known
        async with self._looking:
            began = time.monotonic()
            if not rotation.sweep_due(began):
                return
            queues = self._terms.open(self._queues)
            found = await self._store.single(lambda tx: tx.lanes(queues, MOST_LANES)) if queues else []
            ended = time.monotonic()
            rotation.swept(self._open(found), ended, ended - began, complete=len(found) < MOST_LANES)

    def _open(self, news: list[News]) -> list[News]:
        """Those of lanes that take part."""
        view = self._terms.view
        if view.queues or view.tenants:
            news = [each for each in news if not view.rests(each.lane.queue, each.lane.tenant)]
        return news if self._tenant is None else [each for each in news if each.lane.tenant == self._tenant]


def _limit(queue: str) -> LimitName:
    return LimitName(LimitKind.QUEUE, "", queue)


def _lanes_of(name: LimitName) -> Shut:
    return ("queue" if name.kind is LimitKind.QUEUE else "tenant", name.name)


def _by_lane(jobs: Sequence[Job]) -> dict[Lane, Taken]:
    seen: dict[tuple[str, str, int], list[int]] = {}
    for job in jobs:  # run for every job: little is made here
        key = (job.queue, job.tenant, job.priority)
        here = seen.get(key)
        if here is None:
            seen[key] = [1, job.seq, job.cost]
        else:
            here[0] += 1
            here[1] = max(here[1], job.seq)
            here[2] += job.cost
    return {Lane(*key): Taken(*here) for key, here in seen.items()}
