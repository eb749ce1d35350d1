"""Worker registration, leases, drain requests, and the job types that workers handle."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, TypedDict, Unpack

from holdfast.engine.sized_pages import SizedPage, read_page
from holdfast.errors import HoldfastError, NotFound
from holdfast.model.ids import WorkerId, worker_name
from holdfast.model.job_type import ALL_TENANTS, MAX_DESCRIBED_TYPES, JobType, TypeMark, TypeRow
from holdfast.model.time import Duration, Instant
from holdfast.model.worker import LeaseStatus, Unresponsiveness, WorkerInfo, WorkerRow
from holdfast.policy import job_types
from holdfast.policy.explain import parse_queues
from holdfast.policy.nodes import node_of
from holdfast.store.port.store import Store, Tx

TYPES_SEEN_INTERVAL_S = 120.0
"""Interval at which the last-seen times of types with live workers are updated."""

_READ_SIZE = 100
"""Workers or job types that are read at a time, so that large ones use little memory."""

_FIELDS_BYTES = 500
"""Size of the other fields of a worker or a job type in a response."""


class TypeSummary(NamedTuple):
    """Stored job type and the live workers that handle it."""

    row: TypeRow
    workers: list[WorkerRow]

    @property
    def last_seen(self) -> Instant:
        """Last time a worker that handles the type was seen."""
        return max(self.row.seen_at, *(worker.renewed_at for worker in self.workers), Instant(0))

    @property
    def queues(self) -> list[str]:
        """Queues served by its live workers; without live workers, the queues stored with the type."""
        served = {queue for worker in self.workers for queue in parse_queues(worker.info.queues) if queue}
        return sorted(served or self.row.about.queues)


class WorkerReport(TypedDict, total=False):
    """Status that a worker sends with each lease renewal."""

    memory: int | None
    """Resident memory in bytes."""
    draining: bool
    """The worker claims no more jobs and is about to stop."""
    unresponsive: Unresponsiveness | None
    """For how long its process has not responded, and why; None if it responds."""


class WorkerService:
    """Use cases of workers: leases, drain requests and the job types that they handle."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def register(self, worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> None:
        """Register a worker with a new lease and the job types it describes."""
        await self._store.single(lambda tx: tx.register(worker, lease))
        with suppress(HoldfastError):  # descriptions are optional: the next registration sends them again
            await save_declared_types(self._store, worker, described)

    async def renew(self, worker: WorkerId, lease: Duration, **report: Unpack[WorkerReport]) -> LeaseStatus:
        """Renew a worker's lease and return its status; `LOST` if the lease and its jobs are gone."""
        if not await self._store.single(lambda tx: tx.renew(worker, lease, **report)):
            return LeaseStatus.LOST
        state = await self._store.single(lambda tx: tx.lease_state(worker))
        return LeaseStatus.DRAINING if state is not None and state.draining else LeaseStatus.KEPT

    async def depart(self, worker: WorkerId) -> bool:
        """Remove a worker that holds no jobs; False if it still holds some."""
        return await self._store.single(lambda tx: tx.depart(worker))

    async def drain(self, worker: WorkerId) -> tuple[Instant, list[WorkerRow]]:
        """Ask all workers on the node of this worker to drain; raises `NotFound`.

        Returns the time and these workers, the given one first. They see the request at their next lease renewal.
        Idempotent: safe to repeat.
        """

        async def work(tx: Tx) -> tuple[Instant, list[WorkerRow]]:
            rows = node_of(worker, await tx.workers())
            if rows and await tx.drain_workers([row.info.id for row in rows]):
                rows = node_of(worker, await tx.workers())
            return await tx.now(), rows

        at, rows = await self._store.run(work)
        if not rows:
            raise NotFound(f"there is no worker {worker_name(worker)!r}: it may have stopped already")
        return at, rows

    async def all(self) -> list[WorkerRow]:
        """Return the registered workers, read from the database."""
        return await self._store.single(lambda tx: tx.workers())

    async def page(
        self, tenant: str | None, after: tuple[Instant, int], limit: int
    ) -> tuple[Instant, SizedPage[WorkerRow]]:
        """Return the time and a page of the workers that a tenant sees (None: all), oldest first.

        Their job types are left out. The page starts after this start time and worker id.
        """

        async def work(tx: Tx) -> tuple[Instant, SizedPage[WorkerRow]]:
            async def read(key: tuple[Instant, int], count: int) -> list[WorkerRow]:
                return await tx.worker_page(tenant, key, count)

            page = await read_page(read, _worker_key, _worker_size, after=after, limit=limit, read_size=_READ_SIZE)
            return await tx.now(), page

        return await self._store.read(work)

    async def count_of(self, tenant: str) -> int:
        """Return the number of registered workers that serve only this tenant."""
        return await self._store.single(lambda tx: tx.count_workers_of(tenant))

    async def fleet(self, tenant: str | None = None) -> tuple[Instant, list[WorkerRow]]:
        """Return the time and the workers that serve a tenant (None: all), oldest first."""
        return await self._store.read(lambda tx: _read_fleet(tx, tenant))

    async def types(self, tenant: str | None, after: tuple[str, str], limit: int) -> SizedPage[TypeSummary]:
        """Return the job types that a tenant sees (None: all), ordered by name."""

        async def work(tx: Tx) -> SizedPage[TypeRow]:
            async def read(key: tuple[str, str], count: int) -> list[TypeRow]:
                return await tx.types(tenant, key, count)

            return await read_page(read, _type_key, _type_size, after=after, limit=limit, read_size=_READ_SIZE)

        found = await self._store.read(work)
        now, fleet = await self.fleet(tenant)
        handlers: dict[tuple[str, str], list[WorkerRow]] = defaultdict(list)
        for row in fleet:
            if row.expires_at > now:
                for name in row.info.types or ():
                    handlers[row.info.tenant or ALL_TENANTS, name].append(row)
        return SizedPage(
            [TypeSummary(row, handlers[row.tenant, row.about.type]) for row in found.items], more=found.more
        )


def _worker_key(row: WorkerRow) -> tuple[Instant, int]:
    return row.started_at, row.info.id


def _worker_size(row: WorkerRow) -> int:
    info = row.info
    return _FIELDS_BYTES + len(info.queues) + len(info.name) + len(info.host) + len(info.version)


def _type_key(row: TypeRow) -> tuple[str, str]:
    return row.about.type, row.tenant


def _type_size(row: TypeRow) -> int:
    return _FIELDS_BYTES + len(row.about.schema or "") + sum(map(len, row.about.queues))


async def _read_fleet(tx: Tx, tenant: str | None = None) -> tuple[Instant, list[WorkerRow]]:
    return await tx.now(), await tx.workers(tenant)


async def save_declared_types(store: Store, worker: WorkerInfo, described: Sequence[JobType]) -> None:
    """Store the job types that a registering worker declares; writes only changes."""
    names = worker.types or [job_type.type for job_type in described]
    if not names:
        return
    tenant = worker.tenant or ALL_TENANTS
    by_name = {job_type.type: job_type for job_type in described}
    declared = job_types.declared_types(names, by_name, sorted(parse_queues(worker.queues)))

    async def read(tx: Tx) -> tuple[list[TypeMark], Instant]:
        return await tx.type_marks(tenant, 2 * MAX_DESCRIBED_TYPES), await tx.now()

    changes = job_types.plan_changes(*await store.read(read), declared=declared)

    async def write(tx: Tx) -> None:
        for update in changes.updates:
            if update.about is None:
                await tx.mark_types_seen(tenant, [update.type])
            else:
                await tx.save_type(tenant, update.type, update.digest, update.about)
        await tx.delete_types(tenant, changes.evicted)

    if changes.updates or changes.evicted:
        await store.run(write)


async def mark_types_seen(store: Store) -> float:
    """Update the last-seen times of types with live workers, and delete types not seen lately.

    Returns the seconds until the next run.
    """
    now, rows = await store.read(_read_fleet)
    handled: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.expires_at > now:
            handled[row.info.tenant or ALL_TENANTS].update(row.info.types or ())
    for tenant, names in handled.items():
        marks = await store.single(lambda tx, tenant=tenant: tx.type_marks(tenant, 2 * MAX_DESCRIBED_TYPES))  # type: ignore[misc]
        if seen := job_types.due_marks(marks, names, now):
            await store.run(lambda tx, tenant=tenant, seen=seen: tx.mark_types_seen(tenant, seen))  # type: ignore[misc]
    await store.single(lambda tx: tx.prune_types(job_types.RETENTION))
    return TYPES_SEEN_INTERVAL_S
