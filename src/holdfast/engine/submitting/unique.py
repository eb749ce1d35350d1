"""Insert jobs, some of which take the place of unique ones that wait: one transaction, so that there is always one."""

from collections.abc import Sequence

from holdfast.errors import Contention
from holdfast.model.ids import JobId
from holdfast.model.job import Inserted, Job, NewJob
from holdfast.model.state import Status
from holdfast.model.time import Duration
from holdfast.policy import lifecycle
from holdfast.store.port.store import Tx

_ROUNDS = 20


async def insert(tx: Tx, jobs: Sequence[NewJob], *, key_retention: Duration) -> list[Inserted]:
    """As `Tx.insert`; those that replace a unique job end it, while it waits, and have its key.

    The key is locked from the first look on: two that replace the same job come one after the other. A claim may take
    that job between the look and its end, and then it has started: it is left alone, and `holder` tells so.
    """
    rows = await tx.insert(jobs, key_retention=key_retention)
    wanted = {
        job.id: row.id
        for job, row in zip(jobs, rows, strict=True)
        if row.repeats == "unique" and job.unique is not None and job.unique.on_conflict == "replace"
    }
    if not wanted:
        return rows
    started = await _end(tx, wanted)
    replacing = {new: old for new, old in wanted.items() if new not in started}
    fresh = [job for job in jobs if job.id in replacing]
    again = await tx.insert(fresh, key_retention=key_retention, replacing=replacing) if fresh else []
    placed = {job.id: row for job, row in zip(fresh, again, strict=True)}
    return [
        placed.get(job.id) or (row._replace(holder=started[job.id]) if job.id in started else row)
        for job, row in zip(jobs, rows, strict=True)
    ]


async def _end(tx: Tx, wanted: dict[JobId, JobId]) -> dict[JobId, Status]:
    """End the jobs that are to be replaced; where those stand that started before that, by what was to replace them."""
    left, started = dict(wanted), dict[JobId, Status]()
    for _ in range(_ROUNDS):
        if not left:
            return started
        found: dict[JobId, Job] = {job.id: job for job in await tx.get(left.values())}
        left = {new: old for new, old in left.items() if old in found}  # one that was deleted is in nobody's way
        moves = {new: lifecycle.supersede(found[old], by=new) for new, old in left.items()}
        started |= {new: found[left[new]].status for new, move in moves.items() if move is None}
        done = await tx.apply([move for move in moves.values() if move is not None])
        left = {new: old for new, old in left.items() if old not in done and new not in started}
    raise Contention(f"job {next(iter(left.values()))} changes faster than it can be replaced; try again")
