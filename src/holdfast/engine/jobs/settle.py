"""Settle attempts: apply outcomes under the fence; finished jobs leave the live table."""

from collections.abc import Callable, Sequence

from holdfast.errors import OutcomeUnknown
from holdfast.model.ids import JobId
from holdfast.model.job import Job, RetryRule
from holdfast.model.outcome import Report, Succeeded
from holdfast.model.state import Status
from holdfast.model.time import Instant
from holdfast.model.transition import Transition
from holdfast.policy import lifecycle
from holdfast.store.port.store import Store, Tx


async def settle(
    store: Store,
    reports: Sequence[Report],
    *,
    default: RetryRule,
    rng: Callable[[], float],
    about: Instant = Instant(0),
) -> set[JobId]:
    """Apply outcomes and return the ids that took effect; the rest are no longer held.

    Idempotent: safe to retry. Needs no read, because each is decided from the job as it was claimed. `about`: the
    caller's estimate of the database's time, good enough for statistics.
    """
    plain = all(type(report.outcome) is Succeeded and report.logs is None for report in reports)
    now = about if plain else await store.single(lambda tx: tx.now())
    moves = [
        lifecycle.settle(job, outcome, logs=logs, now=now, default=default, rand=0.5 if plain else rng())
        for job, outcome, logs in reports
    ]
    try:
        return await store.single(lambda tx: tx.apply(moves, ended_at=now))
    except OutcomeUnknown:
        return await _settle_again(store, moves, now)


async def _settle_again(store: Store, moves: Sequence[Transition], ended_at: Instant) -> set[JobId]:
    """Retry after a lost commit reply; check whether the first try applied the rejected ones."""

    async def work(tx: Tx) -> set[JobId]:
        done = await tx.apply(moves, ended_at=ended_at)
        refused = {move.id: move for move in moves if move.id not in done}
        found = await tx.get(refused) if refused else []
        return done | {job.id for job in found if _was_applied(refused[job.id], job)}

    return await store.run(work)


def _was_applied(move: Transition, job: Job) -> bool:
    """Whether a job looks as this move would have left it."""
    if job.fence != move.fence or job.status is not move.to:
        return False
    return job.worker == (move.worker if move.to.terminal else None) and job.status is not Status.RUNNING
