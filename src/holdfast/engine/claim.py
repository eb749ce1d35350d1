"""Claim jobs for one worker: in turn over the lanes, under its lease."""

import asyncio
import time
from collections.abc import Iterable, Sequence

from holdfast.engine.queues import Pauses
from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.lane import Lane, News
from holdfast.policy.fairness import FLOOR_TRAIL, Rotation, Round, Taken
from holdfast.store.port import Store

MOST_LANES = 20_000
"""How many lanes of one queue are looked at at once; the rest has its turn when some are done."""


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
        self._pauses = Pauses(store)
        self._rotation = Rotation()
        self._looking = asyncio.Lock()

    async def claim(self, slots: int) -> list[Job]:
        """At most `slots` jobs, now held by the worker; none when nothing is ready or its lease is gone."""
        if await self._pauses.look():
            # Lanes of queues that rest are forgotten, and those of queues that do not any more are looked for.
            self._rotation = Rotation()
        rotation = self._rotation
        await self._look(rotation)
        while shares := rotation.allot(slots):
            if jobs := await self._claim(rotation, shares, slots):
                return jobs
        return []

    def stop(self) -> None:
        """Nothing waits here: a claim that is under way comes to its end."""

    def heard(self, news: Iterable[News] | None) -> None:
        """Take in a wake-up, as a subscription gave it."""
        if news is None:
            return
        named = list(news)
        self._rotation.heard(self._open(self._ours(named)))
        if not named:
            self._rotation.look_again()

    def _open(self, news: list[News]) -> list[News]:
        return [each for each in news if each.lane.queue not in self._pauses.paused] if self._pauses.paused else news

    async def _claim(self, rotation: Rotation, shares: Round, slots: int) -> list[Job]:
        try:
            jobs = await self._store.single(lambda tx: tx.claim(self.worker, shares, slots, self._types))
        except BaseException:
            rotation.gave_up(shares)
            raise
        # A late commit lowers the floor by its news, where those of other nodes come by themselves. Lost news cost as
        # much as ever: until the next look.
        trail = 0.0 if self._store.tells_news else FLOOR_TRAIL
        rotation.took(shares, _by_lane(jobs), slots, time.monotonic(), trail=trail)
        return jobs

    async def _look(self, rotation: Rotation) -> None:
        if not rotation.sweep_due(time.monotonic()):
            return
        if self._looking.locked() and len(rotation):
            return  # a look may be slow; the others claim meanwhile from the lanes that are known
        async with self._looking:
            began = time.monotonic()
            if not rotation.sweep_due(began):
                return
            queues = self._pauses.open(self._queues)
            found = await self._store.single(lambda tx: tx.lanes(queues, MOST_LANES)) if queues else []
            ended = time.monotonic()
            rotation.swept(self._ours(found), ended, ended - began, complete=len(found) < MOST_LANES)

    def _ours(self, news: list[News]) -> list[News]:
        return news if self._tenant is None else [each for each in news if each.lane.tenant == self._tenant]


def _by_lane(jobs: Sequence[Job]) -> dict[Lane, Taken]:
    taken: dict[Lane, Taken] = {}
    for job in jobs:
        lane = Lane(job.queue, job.tenant, job.priority)
        before = taken.get(lane)
        if before:
            taken[lane] = Taken(before.jobs + 1, max(before.furthest, job.seq), before.cost + job.cost)
        else:
            taken[lane] = Taken(1, job.seq, job.cost)
    return taken
