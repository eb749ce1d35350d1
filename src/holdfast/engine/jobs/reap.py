"""Jobs whose worker is gone: run again, or given up when their attempts are spent."""

from collections.abc import Sequence

from holdfast.engine.dice import Dice
from holdfast.model.job import Job, RetryRule
from holdfast.policy import lifecycle
from holdfast.store.port.store import Store, Tx

AT_ONCE = 1_000
"""Jobs moved in one transaction."""

_WORKERS_AT_ONCE = 20


async def reap(store: Store, *, default: RetryRule, dice: Dice) -> int:
    """Put back, or bury, jobs whose lease ran out; how many. Safe on every node at once, and to be cut off midway.

    Worker rows are locked first and struck last, in the same transaction and with the expiry tested again: a renewal
    or a claim either comes before all of this or finds the row gone.
    """

    async def work(tx: Tx) -> int:
        workers = await tx.expired(_WORKERS_AT_ONCE)
        if not workers:
            return 0
        moved = 0
        for worker in workers:
            if moved < AT_ONCE:
                moved += await _expire(tx, await tx.held_by(worker, AT_ONCE - moved), default, dice)
        await tx.forget(workers)
        return moved

    return await store.run(work)


async def adopt_orphans(store: Store, *, default: RetryRule, dice: Dice) -> int:
    """The same for running jobs whose worker has no row at all: a net below `reap`, which leaves none."""

    async def work(tx: Tx) -> int:
        return await _expire(tx, await tx.orphans(AT_ONCE), default, dice)

    return await store.run(work)


async def _expire(tx: Tx, lost: Sequence[Job], default: RetryRule, dice: Dice) -> int:
    if not lost:
        return 0
    now = await tx.now()
    moves = [lifecycle.expire(job, now=now, default=default, dice=dice()) for job in lost]
    return len(await tx.apply(moves, ended_at=now))
