"""What a person does to jobs: cancel them, run them again, delete them; one, or all that a filter finds."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from holdfast.engine.jobs.queries import one
from holdfast.errors import Contention
from holdfast.model.ids import JobId
from holdfast.model.job import Job, JobFilter, Page
from holdfast.model.transition import Transition
from holdfast.policy import actions, lifecycle
from holdfast.policy.lifecycle import Action
from holdfast.store.port.store import Store, Tx

_ROUNDS = 20

AT_ONCE = 500
"""How many jobs one transaction changes."""

WALK = 10_000
"""How many rows of each table one look reads."""

MOST = 5_000
"""How many jobs one call changes before it says where to go on."""

MOST_LOOKS = 10
"""And how many looks it takes, found or not."""


class Bulk(NamedTuple):
    """What became of an action on all jobs that match."""

    matched: int
    """Found, and in a state that allows it."""
    changed: int
    rest: JobId | None
    """Where to go on; None when all were seen."""


async def cancel(store: Store, ids: Collection[JobId], *, reason: str) -> set[JobId]:
    """Cancel those that are not finished, running ones too; which were cancelled by this call."""
    return await _move(store, ids, lambda job: lifecycle.cancel(job, reason))


async def retry(store: Store, ids: Collection[JobId]) -> set[JobId]:
    """Make ready now those that are dead, cancelled or waiting; which were moved by this call."""
    return await _move(store, ids, lifecycle.retry)


async def delete(store: Store, ids: Collection[JobId]) -> set[JobId]:
    """Delete those that neither run nor wait for others, with all they recorded; which were deleted by this call.

    Their idempotency keys stay for their term: a key that is repeated never makes a second job.
    """

    async def work(tx: Tx) -> tuple[set[JobId], list[JobId]]:
        wanted = [job for job in await tx.get(left) if actions.may(job, "delete")]
        gone = await tx.remove(wanted) if wanted else set()
        return gone, [job.id for job in wanted if job.id not in gone]

    removed: set[JobId] = set()
    left: Sequence[JobId] = list(ids)
    for _ in range(_ROUNDS):
        done, left = await store.run(work)
        removed |= done
        if not left:
            return removed
    raise _contended(left)


async def act_on_one(store: Store, action: Action, job_id: JobId, *, tenant: str | None, reason: str) -> None:
    """Do it to this job; `NotFound`, or `Conflict` when its state does not allow it, decided on the job as it is."""
    await one(store, job_id, tenant=tenant)
    if job_id not in await _doing(action, reason)(store, [job_id]):
        raise actions.refusal(await one(store, job_id, tenant=tenant), action)


async def act_on_all(
    store: Store, action: Action, where: JobFilter, *, before: JobId | None, reason: str, dry_run: bool
) -> Bulk:
    """Do it to all that match, newest first; in several calls if they are many. Safe at once with itself.

    Jobs submitted meanwhile are newer than where it began: they are left alone, so that it comes to an end.
    """
    act = _doing(action, reason)
    matched = changed = 0
    for _ in range(MOST_LOOKS):
        found = await store.read(lambda tx, before=before: tx.seek(where, Page(AT_ONCE, before), most=WALK))  # type: ignore[misc]
        ids = [job.id for job in found.jobs if actions.may(job, action)]
        matched += len(ids)
        if ids and not dry_run:
            changed += len(await act(store, ids))
        before = found.rest
        if before is None or matched >= MOST:
            break
    return Bulk(matched, changed, before)


async def act_on_these(
    store: Store, action: Action, ids: Collection[JobId], where: JobFilter, *, reason: str, dry_run: bool
) -> Bulk:
    """Do it to those of these jobs that have the tenant and the status of the filter; others are passed by."""
    found = await store.single(lambda tx: tx.get(ids))
    allowed = [
        job.id
        for job in found
        if where.tenant in (None, job.tenant) and where.status in (None, job.status) and actions.may(job, action)
    ]
    changed = 0 if dry_run or not allowed else len(await _doing(action, reason)(store, allowed))
    return Bulk(len(allowed), changed, None)


def _doing(action: Action, reason: str) -> Callable[[Store, Collection[JobId]], Awaitable[set[JobId]]]:
    match action:
        case "cancel":
            return lambda store, ids: cancel(store, ids, reason=reason)
        case "retry":
            return retry
        case "delete":
            return delete


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
    raise _contended(left)


def _contended(left: Sequence[JobId]) -> Contention:
    return Contention(f"job {left[0]} changes faster than it can be decided on; try again")
