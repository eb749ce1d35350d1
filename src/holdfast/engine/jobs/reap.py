"""Recovery of jobs whose worker is gone: retry them, or mark them dead."""

from collections.abc import Callable, Sequence

from holdfast.model.job import Job, RetryRule
from holdfast.policy import lifecycle
from holdfast.store.port.store import Store, Tx

BATCH_SIZE = 1_000
"""Jobs changed by one transaction."""

_WORKER_BATCH_SIZE = 20


async def reap(store: Store, *, default: RetryRule, rng: Callable[[], float]) -> int:
    """Recover jobs whose lease expired and return their number. Safe on all nodes at once.

    Worker rows are locked first and removed last, in the same transaction and with the expiry tested again: a renewal
    or a claim either comes before all of this or finds the row gone.
    """

    async def work(tx: Tx) -> int:
        workers = await tx.lock_expired(_WORKER_BATCH_SIZE)
        if not workers:
            return 0
        recovered = 0
        for worker in workers:
            if recovered < BATCH_SIZE:
                recovered += await _expire(tx, await tx.held_by(worker, BATCH_SIZE - recovered), default, rng)
        await tx.delete_expired(workers)
        return recovered

    return await store.run(work)


async def shorten_leases(store: Store) -> int:
    """Shorten leases that were granted before the database's clock was set back; return how many.

    Without this, jobs of a dead node would wait longer by the step. Nothing is locked unless there is such a lease.
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
