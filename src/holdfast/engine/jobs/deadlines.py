"""Cancellation of jobs that missed their start deadline; claims skip them."""

from holdfast.policy import lifecycle
from holdfast.store.port.store import Store, Tx

BATCH_SIZE = 1_000
"""Jobs cancelled by one transaction."""


async def cancel_overdue(store: Store) -> int:
    """Cancel one batch of overdue jobs; return the number checked. Safe on all nodes at once."""

    async def work(tx: Tx) -> int:
        overdue = await tx.overdue(BATCH_SIZE)
        if not overdue:
            return 0
        now = await tx.now()
        await tx.apply([step for job in overdue if (step := lifecycle.miss_deadline(job, now)) is not None])
        return len(overdue)

    return await store.run(work)
