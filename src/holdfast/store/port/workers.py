"""Port for workers and their leases. Part of `holdfast.store.port.store`."""

from collections.abc import Collection, Iterable
from typing import Protocol

from holdfast.model.ids import WorkerId
from holdfast.model.time import Duration, Instant
from holdfast.model.worker import LeaseState, Unresponsiveness, WorkerInfo, WorkerRow


class WorkerRepository(Protocol):
    """Workers and their leases. A job's lease is its worker's."""

    async def register(self, worker: WorkerInfo, lease: Duration) -> None:
        """Register a new worker incarnation and start its lease."""

    async def renew(
        self,
        worker: WorkerId,
        lease: Duration,
        *,
        memory: int | None = None,
        draining: bool = False,
        unresponsive: Unresponsiveness | None = None,
    ) -> bool:
        """Renew a lease; return False if it has expired.

        Also stores the worker's memory use, that it is draining, and whether its process responds.
        """

    async def drain_workers(self, workers: Iterable[WorkerId]) -> list[WorkerId]:
        """Mark workers as draining; return those that were not."""

    async def lease_state(self, worker: WorkerId) -> LeaseState | None:
        """Return the tenant and lease of a worker; None if it is not registered."""

    async def depart(self, worker: WorkerId) -> bool:
        """Unregister a worker; return False if it still holds jobs."""

    async def overlong_leases(self, limit: int) -> list[WorkerId]:
        """Return workers whose lease ends later than its length from now.

        Such a lease was granted before the database's clock was set back.
        """

    async def shorten_leases(self, workers: Collection[WorkerId]) -> int:
        """Let overlong leases of these workers end after their length from now.

        Returns how many were changed. Safe for a worker that is alive: it counts the same length from before its last
        renewal.
        """

    async def lock_expired(self, limit: int) -> list[WorkerId]:
        """Lock and return workers with expired leases.

        Renewals and claims of these workers wait; other reapers skip them.
        """

    async def lock_expired_worker(self, worker: WorkerId) -> bool:
        """Lock this worker; False if its lease is valid or another transaction has locked it."""

    async def delete_expired(self, workers: Collection[WorkerId]) -> int:
        """Delete expired workers that hold no jobs, checking the expiry again."""

    async def workers(self, tenant: str | None = None) -> list[WorkerRow]:
        """Return the workers that serve a tenant, alone or among others (None: all), oldest first."""

    async def count_workers_of(self, tenant: str) -> int:
        """Return the number of workers that serve only this tenant."""

    async def worker_page(self, tenant: str | None, after: tuple[Instant, int], limit: int) -> list[WorkerRow]:
        """Return workers that a tenant sees (None: all), oldest first, without their job types.

        The page starts after this start time and worker id.
        """

    async def departed(self, limit: int) -> list[tuple[WorkerInfo, Instant]]:
        """Return workers that left or were lost in the last day, latest first.

        Each comes with the time it was last seen.
        """
