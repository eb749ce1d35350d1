"""Events of finished attempts, built from their reports and transitions."""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from holdfast.model.ids import JobId
from holdfast.model.outcome import (
    BackendUnavailable,
    CancelledByHandler,
    Crashed,
    Failed,
    Interrupted,
    Outcome,
    Report,
    Snoozed,
    Succeeded,
    TimedOut,
)
from holdfast.model.time import Duration, Instant, in_seconds
from holdfast.model.transition import Transition
from holdfast.policy.lifecycle import AttemptRecord
from holdfast.policy.tracebacks import fold_engine_frames
from holdfast.telemetry.events import AttemptFinished

_ATTEMPT_LOG = msgspec.json.Decoder(list[AttemptRecord])
_OUTCOMES: dict[type[Outcome], str] = {
    Succeeded: "succeeded",
    Failed: "failed",
    TimedOut: "timed_out",
    Crashed: "crashed",
    Snoozed: "snoozed",
    Interrupted: "released",
    BackendUnavailable: "unavailable",
    CancelledByHandler: "cancelled",
}


def finished_attempts(
    reports: Sequence[Report],
    transitions: Sequence[Transition],
    *,
    done: Collection[JobId],
    ended_at: Instant,
    successes: bool,
) -> Iterator[AttemptFinished]:
    """Yield an event for each attempt whose outcome was recorded.

    Args:
        reports: Reports of the attempts.
        transitions: Transition of each report.
        done: Ids of the jobs whose transition was applied.
        ended_at: Time at which the attempts ended.
        successes: Yield the attempts that succeeded, too. There may be thousands of them in a second.
    """
    for report, transition in zip(reports, transitions, strict=True):
        if (successes or type(report.outcome) is not Succeeded) and transition.id in done:
            yield _event(report, transition, ended_at)


def _event(report: Report, transition: Transition, ended_at: Instant) -> AttemptFinished:
    job = report.job
    error = _ATTEMPT_LOG.decode(transition.attempt_log)[-1].error if transition.attempt_log else None
    ran = Duration(0) if job.started_at is None else Duration(max(0, ended_at - job.started_at))
    return AttemptFinished(
        job_id=str(job.id),
        job_type=job.type,
        queue=job.queue,
        tenant=job.tenant,
        attempt=job.attempts,
        max_attempts=job.max_attempts,
        outcome=_OUTCOMES.get(type(report.outcome), "deferred"),
        status=transition.to.value,
        seconds=round(in_seconds(ran), 3),
        retry_in=round(in_seconds(transition.delay), 1),
        error="" if error is None else f"{error.kind}: {error.message}",
        fingerprint="" if error is None else error.fingerprint,
        traceback="" if error is None else fold_engine_frames(error.traceback),
    )
