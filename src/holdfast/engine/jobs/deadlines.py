"""Jobs that could not start by their deadline: cancelled, with the reason. A claim passes them by meanwhile."""

from holdfast.policy import lifecycle
from holdfast.store.port.store import Store, Tx

AT_ONCE = 1_000
"""Jobs cancelled in one transaction."""


async def cancel_overdue(store: Store) -> int:
    """Cancel waiting jobs whose deadline has passed, one batch; how many were looked at. Safe on every node at once."""

    async def work(tx: Tx) -> int:
        late = await tx.overdue(AT_ONCE)
        if not late:
            return 0
        now = await tx.now()
        moves = [move for job in late if (move := lifecycle.miss(job, now)) is not None]
        await tx.apply(moves)
        return len(late)

    return await store.run(work)
