"""Where a worker's jobs come from and go to. An engine fits, and so does a client that speaks HTTP to one."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Held, Job
from holdfast.model.job_type import JobType
from holdfast.model.lane import News
from holdfast.model.outcome import Report
from holdfast.model.time import Duration
from holdfast.model.worker import Renewed, WorkerInfo


class Claims(Protocol):
    """One worker's way to jobs."""

    async def claim(self, slots: int) -> list[Job]:
        """At most `slots` jobs, now held by the worker."""

    def patience(self) -> float:
        """Seconds after which to ask again though nobody told of anything."""

    def heard(self, news: Iterable[News] | None) -> None:
        """Take in a wake-up."""

    def stop(self) -> None:
        """No more is wanted: a claim that only waits for jobs ends, with none."""


class Subscription(Protocol):
    """Wake-ups."""

    async def wait(self, timeout: float) -> list[News] | None:
        """Until something may have become ready, or the timeout."""

    def reset(self) -> None:
        """Work was found."""

    def close(self) -> None:
        """Hear no more."""


class Source(Protocol):
    """What a worker asks for."""

    def claims(self, worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None = None) -> Claims:
        """A way to jobs of these queues and types."""

    def listen(self, queues: Sequence[str]) -> Subscription:
        """Wake-ups for these queues."""

    async def settle_many(self, reports: Sequence[Report]) -> set[JobId]:
        """Report what came of attempts; which reports took effect."""

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """What the worker holds, by the database's account."""

    async def lost(self, held: Collection[Held]) -> set[JobId]:
        """Those of `held` that were taken away meanwhile."""


class Fleet(Protocol):
    """What a supervisor asks for: leases, and the jobs of a child that is gone."""

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Enter a worker, with a lease from now on, and what there is to tell of the types it handles."""

    async def renew(
        self, worker: WorkerId, lease: Duration, *, memory: int | None = None, draining: bool = False
    ) -> Renewed:
        """Prolong a lease that lives; whether it does, and whether the worker is asked to end."""

    async def depart(self, worker: WorkerId) -> bool:
        """Strike a worker that holds nothing any more; False when it does, or is not there."""

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        """What a worker holds."""

    async def settle_many(self, reports: Sequence[Report]) -> set[JobId]:
        """Report what came of attempts."""

    async def keep_house(self, stop: asyncio.Event) -> None:
        """Reap, promote, prune and tend until `stop`."""

    async def aclose(self) -> None:
        """Close all connections."""
