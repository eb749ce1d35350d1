"""Recovery of jobs whose worker is gone: retry them, or mark them dead."""

from collections.abc import Callable, Sequence
from functools import partial

from holdfast.model.ids import WorkerId
from holdfast.model.job import Job, RetryRule
from holdfast.policy import lifecycle
from holdfast.store.port.store import Store, Tx

BATCH_SIZE = 1_000
"""Jobs changed by one transaction."""

_WORKER_BATCH_SIZE = 1_000
"""Workers with an expired lease that are considered at a time."""


async def reap(store: Store, *, default: RetryRule, rng: Callable[[], float]) -> int:
    """Recover jobs whose lease expired and return their number. Safe on all nodes at once.

    Each worker has its own transaction, so that one with many jobs delays no other. The worker's row is locked first
    and removed last, with the expiry tested again: a renewal or a claim either comes before all of this or finds the
    row gone. Jobs that another transaction has locked are left for the next time. A node that froze inside a handler's
    transaction holds such a lock until the database ends its connection.
    """

    async def recover(worker: WorkerId, tx: Tx) -> int:
        if not await tx.lock_expired_worker(worker):
            return 0
        recovered = await _expire(tx, await tx.lock_held_by(worker, BATCH_SIZE), default, rng)
        await tx.delete_expired([worker])
        return recovered

    expired = await store.run(lambda tx: tx.lock_expired(_WORKER_BATCH_SIZE))
    return sum([await store.run(partial(recover, worker)) for worker in expired])


async def shorten_leases(store: Store) -> int:
    """Shorten leases that were granted before the database's clock was set back.

    Returns how many. Otherwise the jobs of a dead node would wait for as much longer as the clock was set back. Nothing
    is locked unless there is such a lease.
    """
    workers = await store.single(lambda tx: tx.overlong_leases(BATCH_SIZE))
    return await store.run(lambda tx: tx.shorten_leases(workers)) if workers else 0


async def adopt_orphans(store: Store, *, default: RetryRule, rng: Callable[[], float]) -> int:
    """Recover running jobs whose worker has no row; `reap` does not find them."""

    async def work(tx: Tx) -> int:
        return await _expire(tx, await tx.orphans(BATCH_SIZE), default, rng)

    return await store.run(work)


async def _expire(tx: Tx, lost: Sequence[Job], default: RetryRule, rng: Callable[[], float]) -> int:
    if not lost:
        return 0
    now = await tx.now()
    transitions = [lifecycle.expire_lease(job, now=now, default=default, rand=rng()) for job in lost]
    return len(await tx.apply(transitions, ended_at=now))
