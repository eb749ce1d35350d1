"""Operator actions on jobs: cancel, retry and delete, by id or by filter."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import NamedTuple

from holdfast.engine.jobs.queries import get_job
from holdfast.errors import Contention
from holdfast.model.decoded_job import Action
from holdfast.model.ids import JobId
from holdfast.model.job import Job, JobFilter, Page
from holdfast.model.transition import Transition
from holdfast.policy import actions, lifecycle
from holdfast.store.port.store import Store, Tx

_MAX_ROUNDS = 20

BATCH_SIZE = 500
"""Jobs changed by one transaction."""

MAX_SCANNED_ROWS = 10_000
"""Rows of each table read per scan."""

MAX_CHANGES_PER_CALL = 5_000
"""Matching jobs after which one call returns a cursor."""

MAX_SCANS = 10
"""Scans per call."""


class BulkResult(NamedTuple):
    """Result of a bulk action."""

    matched: int
    """Jobs found in a state that allows the action."""
    changed: int
    cursor: JobId | None
    """Cursor of the next call; None if all jobs were seen."""


async def cancel(store: Store, ids: Collection[JobId], *, reason: str) -> set[JobId]:
    """Cancel unfinished jobs, including running ones; return the ids cancelled by this call."""
    return await _apply(store, ids, lambda job: lifecycle.cancel(job, reason))


async def retry(store: Store, ids: Collection[JobId]) -> set[JobId]:
    """Make dead, cancelled or waiting jobs ready; return the ids changed by this call."""
    return await _apply(store, ids, lifecycle.retry)


async def delete(store: Store, ids: Collection[JobId]) -> set[JobId]:
    """Delete jobs that neither run nor wait for others; return the ids deleted by this call.

    Their idempotency keys remain until they expire, so that a replay never creates a second job.
    """

    async def work(tx: Tx) -> tuple[set[JobId], list[JobId]]:
        allowed = [job for job in await tx.get(left) if actions.is_allowed(job, "delete")]
        gone = await tx.remove(allowed) if allowed else set()
        return gone, [job.id for job in allowed if job.id not in gone]

    removed: set[JobId] = set()
    left: Sequence[JobId] = list(ids)
    for _ in range(_MAX_ROUNDS):
        done, left = await store.run(work)
        removed |= done
        if not left:
            return removed
    raise _contended(left)


async def apply_to_job(store: Store, action: Action, job_id: JobId, *, tenant: str | None, reason: str) -> None:
    """Apply an action to one job; raises `NotFound`, or `Conflict` if its state forbids it."""
    await get_job(store, job_id, tenant=tenant)
    if job_id not in await _action_function(action, reason)(store, [job_id]):
        raise actions.forbidden_action(await get_job(store, job_id, tenant=tenant), action)


async def apply_to_matching(
    store: Store, action: Action, where: JobFilter, *, before: JobId | None, reason: str, dry_run: bool
) -> BulkResult:
    """Apply an action to matching jobs, newest first. Concurrent calls are safe.

    Jobs submitted during the call are newer than its start and are skipped, so that it terminates.
    """
    act = _action_function(action, reason)
    matched = changed = 0
    for _ in range(MAX_SCANS):
        page = Page(BATCH_SIZE, before)
        found = await store.read(lambda tx, page=page: tx.seek(where, page, max_rows=MAX_SCANNED_ROWS))  # type: ignore[misc]
        ids = [job.id for job in found.jobs if actions.is_allowed(job, action)]
        matched += len(ids)
        if ids and not dry_run:
            changed += len(await act(store, ids))
        before = found.cursor
        if before is None or matched >= MAX_CHANGES_PER_CALL:
            break
    return BulkResult(matched, changed, before)


async def apply_to_ids(
    store: Store, action: Action, ids: Collection[JobId], where: JobFilter, *, reason: str, dry_run: bool
) -> BulkResult:
    """Apply an action to the given jobs that have the filter's tenant and status."""
    found = await store.single(lambda tx: tx.get(ids))
    allowed = [
        job.id
        for job in found
        if where.tenant in (None, job.tenant) and where.status in (None, job.status) and actions.is_allowed(job, action)
    ]
    changed = 0 if dry_run or not allowed else len(await _action_function(action, reason)(store, allowed))
    return BulkResult(len(allowed), changed, None)


def _action_function(action: Action, reason: str) -> Callable[[Store, Collection[JobId]], Awaitable[set[JobId]]]:
    match action:
        case "cancel":
            return lambda store, ids: cancel(store, ids, reason=reason)
        case "retry":
            return retry
        case "delete":
            return delete


async def _apply(store: Store, ids: Collection[JobId], decide: Callable[[Job], Transition | None]) -> set[JobId]:
    """Read, decide, apply; repeat for jobs that changed concurrently."""
    changed: set[JobId] = set()
    left: Sequence[JobId] = list(ids)
    for _ in range(_MAX_ROUNDS):

        async def work(tx: Tx, left: Sequence[JobId] = left) -> tuple[set[JobId], list[JobId]]:
            transitions = [step for job in await tx.get(left) if (step := decide(job)) is not None]
            done = await tx.apply(transitions) if transitions else set()
            return done, [transition.id for transition in transitions if transition.id not in done]

        done, left = await store.run(work)
        changed |= done
        if not left:
            return changed
    raise _contended(left)


def _contended(left: Sequence[JobId]) -> Contention:
    return Contention(f"job {left[0]} kept changing concurrently; try again")
