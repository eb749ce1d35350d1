"""Workers: asking them to end, and what they tell of the types they handle."""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple, TypedDict, Unpack

from holdfast.coordination.port import Registry
from holdfast.errors import HoldfastError, NotFound
from holdfast.model.ids import WorkerId, worker_name
from holdfast.model.job_type import EVERYBODY, MAX_DESCRIBED_TYPES, JobType, TypeMark, TypeRow
from holdfast.model.time import Duration, Instant
from holdfast.model.worker import LeaseStatus, WorkerInfo, WorkerRow
from holdfast.policy import job_types
from holdfast.policy.explain import queues_of
from holdfast.policy.nodes import node_of
from holdfast.store.port.store import Store, Tx

TYPES_SEEN_INTERVAL_S = 120.0
"""Seconds after which it is noted again which types there are workers for."""


class TypeSummary(NamedTuple):
    """What is remembered of a type, and the workers that are there for it now."""

    row: TypeRow
    workers: list[WorkerRow]

    @property
    def last_seen(self) -> Instant:
        """When somebody was last there for it."""
        return max(self.row.seen_at, *(worker.renewed_at for worker in self.workers), Instant(0))

    @property
    def queues(self) -> list[str]:
        """Those that its workers serve; when none are there, those that they served."""
        here = {queue for worker in self.workers for queue in queues_of(worker.info.queues) if queue}
        return sorted(here or self.row.about.queues)


class WorkerReport(TypedDict, total=False):
    """What a worker tells of itself with each renewal: bytes of its memory, and that it is about to end."""

    memory: int | None
    draining: bool


async def register(
    store: Store, registry: Registry, worker: WorkerInfo, lease: Duration, described: Sequence[JobType]
) -> None:
    """Enter a worker, with a lease from now on, and what it tells of the types it handles."""
    await store.single(lambda tx: tx.register(worker, lease))
    registry.beat(worker.id, lease, worker)
    with suppress(HoldfastError):  # no worker waits for a form to be remembered; the next one tells it again
        await learn(store, worker, described)


async def renew(
    store: Store, registry: Registry, worker: WorkerId, lease: Duration, **told: Unpack[WorkerReport]
) -> LeaseStatus:
    """Prolong a lease that lives, and hear whether its worker is to end."""
    if not await store.single(lambda tx: tx.renew(worker, lease, **told)):
        return LeaseStatus.LOST
    registry.beat(worker, lease)
    state = await store.single(lambda tx: tx.lease_state(worker))
    return LeaseStatus.DRAINING if state is not None and state.draining else LeaseStatus.KEPT


async def drain(store: Store, registry: Registry, worker: WorkerId) -> tuple[Instant, list[WorkerRow]]:
    """Ask a worker, and whoever is of its node, to end: the time, and they, the worker first; raises `NotFound`.

    It is noted with their leases, so they hear of it at their next renewal; asked again, nothing changes.
    """

    async def ask(tx: Tx) -> tuple[Instant, list[WorkerRow]]:
        end = node_of(worker, await tx.workers())
        if end and await tx.drain_workers([row.info.id for row in end]):
            end = node_of(worker, await tx.workers())
        return await tx.now(), end

    at, rows = await store.run(ask)
    if not rows:
        raise NotFound(f"there is no worker {worker_name(worker)!r}: it may have ended by itself")
    registry.changed()
    return at, rows


async def learn(store: Store, worker: WorkerInfo, described: Sequence[JobType]) -> None:
    """Remember what a worker that registers tells of its types; writes only what is news."""
    names = worker.types or [each.type for each in described]
    if not names:
        return
    tenant = worker.tenant or EVERYBODY
    told = job_types.of_names(names, {each.type: each for each in described}, sorted(queues_of(worker.queues)))

    async def known(tx: Tx) -> tuple[list[TypeMark], Instant]:
        return await tx.type_marks(tenant, 2 * MAX_DESCRIBED_TYPES), await tx.now()

    changes = job_types.changes(*await store.read(known), told=told)

    async def write(tx: Tx) -> None:
        for each in changes.noted:
            if each.about is None:
                await tx.see_types(tenant, [each.type])
            else:
                await tx.save_type(tenant, each.type, each.digest, each.about)
        await tx.forget_types(tenant, changes.forgotten)

    if changes.noted or changes.forgotten:
        await store.run(write)


async def see_types(store: Store) -> float:
    """Note which types there are workers for, and forget those for which there were none in a month.

    Seconds until it is to be done again.
    """
    now, rows = await store.read(_fleet)
    handled: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.expires_at > now:
            handled[row.info.tenant or EVERYBODY].update(row.info.types or ())
    for tenant, names in handled.items():
        marks = await store.single(lambda tx, tenant=tenant: tx.type_marks(tenant, 2 * MAX_DESCRIBED_TYPES))  # type: ignore[misc]
        if seen := job_types.overdue(marks, names, now):
            await store.run(lambda tx, tenant=tenant, seen=seen: tx.see_types(tenant, seen))  # type: ignore[misc]
    await store.single(lambda tx: tx.prune_types(job_types.RETENTION))
    return TYPES_SEEN_INTERVAL_S


async def types(
    store: Store, registry: Registry, tenant: str | None, after: tuple[str, str], limit: int
) -> list[TypeSummary]:
    """What is remembered of the types that a tenant sees (None: of all), by name."""
    found = await store.single(lambda tx: tx.types(tenant, after, limit))
    now, fleet = await registry.fleet()
    here: dict[tuple[str, str], list[WorkerRow]] = defaultdict(list)
    for row in fleet:
        if row.expires_at > now:
            for name in row.info.types or ():
                here[row.info.tenant or EVERYBODY, name].append(row)
    return [TypeSummary(row, here[row.tenant, row.about.type]) for row in found]


async def _fleet(tx: Tx) -> tuple[Instant, list[WorkerRow]]:
    return await tx.now(), await tx.workers()
