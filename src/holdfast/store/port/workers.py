"""What the engine asks of a database about workers and their leases. A part of `holdfast.store.port.store`."""

from collections.abc import Collection, Iterable
from typing import Protocol

from holdfast.model.ids import WorkerId
from holdfast.model.time import Duration, Instant
from holdfast.model.worker import LeaseState, WorkerInfo, WorkerRow


class Fleet(Protocol):
    """Workers and their leases. A job's lease is its worker's."""

    async def register(self, worker: WorkerInfo, lease: Duration) -> None:
        """Enter a new incarnation, with a lease from now on."""

    async def renew(
        self, worker: WorkerId, lease: Duration, *, memory: int | None = None, draining: bool = False
    ) -> bool:
        """Prolong a lease that still lives. Never revives one that ran out: then False.

        What the worker tells of itself is noted with it: its memory, and that it is about to end.
        """

    async def drain_workers(self, workers: Iterable[WorkerId]) -> list[WorkerId]:
        """Note that these are to end; which were not to before."""

    async def lease_state(self, worker: WorkerId) -> LeaseState | None:
        """Whose jobs a worker may have and how its lease stands; None when it is not registered."""

    async def depart(self, worker: WorkerId) -> bool:
        """Strike a worker that holds nothing; False when it still holds jobs."""

    async def expired(self, limit: int) -> list[WorkerId]:
        """Workers whose lease ran out, locked so that neither a renewal nor a claim nor another reaper interferes."""

    async def forget(self, workers: Collection[WorkerId]) -> int:
        """Strike expired workers that hold nothing any more, the expiry tested again."""

    async def workers(self) -> list[WorkerRow]:
        """All that are registered, oldest first."""

    async def departed(self, limit: int) -> list[tuple[WorkerInfo, Instant]]:
        """Those that left or were lost in the last day, and when each was last heard of, the last first."""
