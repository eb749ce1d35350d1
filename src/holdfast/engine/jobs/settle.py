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
    estimated_now: Instant = Instant(0),
) -> set[JobId]:
    """Apply outcomes and return the ids that took effect; the remaining jobs are not held.

    Idempotent: safe to retry. Needs no read, because each transition is decided from the job as it was claimed.
    `estimated_now` is the caller's estimate of the database's time, which is good enough for the statistics of
    successful attempts.
    """
    transitions, now = await decide(store, reports, default=default, rng=rng, estimated_now=estimated_now)
    return await apply(store, transitions, now)


async def decide(
    store: Store, reports: Sequence[Report], *, default: RetryRule, rng: Callable[[], float], estimated_now: Instant
) -> tuple[list[Transition], Instant]:
    """Return the transition of each report, and the time at which the attempts ended."""
    plain = all(type(report.outcome) is Succeeded and report.logs is None for report in reports)
    now = estimated_now if plain else await store.single(lambda tx: tx.now())
    transitions = [
        lifecycle.settle(job, outcome, logs=logs, now=now, default=default, rand=0.5 if plain else rng())
        for job, outcome, logs in reports
    ]
    return transitions, now


async def apply(store: Store, transitions: Sequence[Transition], ended_at: Instant) -> set[JobId]:
    """Apply the transitions and return the ids of the jobs that changed."""
    try:
        return await store.single(lambda tx: tx.apply(transitions, ended_at=ended_at))
    except OutcomeUnknown:
        return await _settle_again(store, transitions, ended_at)


async def _settle_again(store: Store, transitions: Sequence[Transition], ended_at: Instant) -> set[JobId]:
    """Retry after a lost commit reply; detect transitions that the first try applied."""

    async def work(tx: Tx) -> set[JobId]:
        done = await tx.apply(transitions, ended_at=ended_at)
        rejected = {transition.id: transition for transition in transitions if transition.id not in done}
        found = await tx.get(rejected) if rejected else []
        return done | {job.id for job in found if _was_applied(rejected[job.id], job)}

    return await store.run(work)


def _was_applied(transition: Transition, job: Job) -> bool:
    """Return True if the job is in the state that this transition leads to."""
    if job.fence != transition.fence or job.status is not transition.to:
        return False
    holder = transition.worker if transition.to.terminal else None
    return job.worker == holder and job.status is not Status.RUNNING
