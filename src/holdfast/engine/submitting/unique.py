"""Insert jobs, replacing waiting unique jobs in the same transaction."""

from collections.abc import Sequence

from holdfast.errors import Contention
from holdfast.model.ids import JobId
from holdfast.model.job import InsertResult, Job, NewJob
from holdfast.model.state import Status
from holdfast.model.time import Duration
from holdfast.policy import lifecycle
from holdfast.store.port.store import Tx

_MAX_ROUNDS = 20


async def insert_replacing(tx: Tx, jobs: Sequence[NewJob], *, key_retention: Duration) -> list[InsertResult]:
    """Insert jobs; one with `on_conflict="replace"` cancels the waiting job that has its key.

    The first insert locks the key, so that concurrent replacements are serialised. A job that was claimed before it
    could be cancelled is left alone, and `holder` has its status.
    """
    rows = await tx.insert(jobs, key_retention=key_retention)
    conflicts = {
        job.id: row.id
        for job, row in zip(jobs, rows, strict=True)
        if row.repeats == "unique" and job.unique is not None and job.unique.on_conflict == "replace"
    }
    if not conflicts:
        return rows
    started = await _cancel_replaced(tx, conflicts)
    replacing = {new: old for new, old in conflicts.items() if new not in started}
    replacements = [job for job in jobs if job.id in replacing]
    inserted = await tx.insert(replacements, key_retention=key_retention, replacing=replacing) if replacements else []
    by_id = {job.id: row for job, row in zip(replacements, inserted, strict=True)}
    return [
        by_id.get(job.id) or (row._replace(holder=started[job.id]) if job.id in started else row)
        for job, row in zip(jobs, rows, strict=True)
    ]


async def _cancel_replaced(tx: Tx, conflicts: dict[JobId, JobId]) -> dict[JobId, Status]:
    """Cancel the jobs to replace; return the status of those that started, by the new job's id.

    `conflicts` has the id of the old job by that of the new one.
    """
    left, started = dict(conflicts), dict[JobId, Status]()
    for _ in range(_MAX_ROUNDS):
        if not left:
            return started
        found: dict[JobId, Job] = {job.id: job for job in await tx.get(left.values())}
        left = {new: old for new, old in left.items() if old in found}  # a deleted job holds no key
        transitions = {new: lifecycle.supersede(found[old], by=new) for new, old in left.items()}
        started |= {new: found[left[new]].status for new, transition in transitions.items() if transition is None}
        done = await tx.apply([transition for transition in transitions.values() if transition is not None])
        left = {new: old for new, old in left.items() if old not in done and new not in started}
    raise Contention(f"job {next(iter(left.values()))} changes faster than it can be replaced; try again")
