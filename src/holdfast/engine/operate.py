"""What a person does to a job: cancel it, run it again."""

from collections.abc import Callable, Collection, Sequence

from holdfast.errors import Contention
from holdfast.model.ids import JobId
from holdfast.model.job import Job
from holdfast.model.transition import Transition
from holdfast.policy import lifecycle
from holdfast.store.port import Store, Tx

_ROUNDS = 20


async def cancel(store: Store, ids: Collection[JobId], *, reason: str) -> set[JobId]:
    """Cancel those that are not finished, running ones too; which were cancelled by this call."""
    return await _move(store, ids, lambda job: lifecycle.cancel(job, reason))


async def retry(store: Store, ids: Collection[JobId]) -> set[JobId]:
    """Make ready now those that are dead, cancelled or waiting; which were moved by this call."""
    return await _move(store, ids, lifecycle.retry)


async def _move(store: Store, ids: Collection[JobId], decide: Callable[[Job], Transition | None]) -> set[JobId]:
    """Read, decide, apply; where somebody else was quicker, read again and decide again."""
    moved: set[JobId] = set()
    left: Sequence[JobId] = list(ids)
    for _ in range(_ROUNDS):

        async def work(tx: Tx, left: Sequence[JobId] = left) -> tuple[set[JobId], list[JobId]]:
            moves = [move for job in await tx.get(left) if (move := decide(job)) is not None]
            done = await tx.apply(moves) if moves else set()
            return done, [move.id for move in moves if move.id not in done]

        done, left = await store.run(work)
        moved |= done
        if not left:
            return moved
    raise Contention(f"job {left[0]} changes faster than it can be decided on; try again")
