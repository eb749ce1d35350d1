"""What becomes of a job: each function looks at a job and gives the one transition that follows."""

from typing import Literal, assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.ids import JobId, WorkerId, worker_name
from holdfast.model.job import Job, RetryRule
from holdfast.model.outcome import (
    CancelledByHandler,
    Crashed,
    Failed,
    Failure,
    Interrupted,
    Logs,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from holdfast.model.state import TERMINAL, WAITING, Status, can_transition
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339
from holdfast.model.transition import Transition
from holdfast.policy.fingerprint import fingerprint
from holdfast.policy.logs import bound_logs, drop_lines
from holdfast.policy.retry import MAX_WAIT, backoff, honour
from holdfast.policy.text import sanitize

MAX_RELEASES = 100
"""How often a job may be handed back or snoozed without spending an attempt."""

MAX_LOG_ENTRIES = 50
"""How many entries the attempt log holds: the first, and the newest."""

MAX_ATTEMPTS_WITH_LOGS = 10
"""Of how many attempts the lines they logged are kept: the newest."""

CRASHED = "crashed"
"""How the end of an attempt is told whose process died."""

MAX_MESSAGE_LENGTH = 2_000
MAX_TRACEBACK_LENGTH = 8_000
MAX_REASON_LENGTH = 500


Action = Literal["cancel", "retry", "delete"]

_ACTIONS: dict[Status, list[Action]] = {
    Status.BLOCKED: ["cancel"],
    Status.SCHEDULED: ["cancel", "retry", "delete"],
    Status.READY: ["cancel", "delete"],
    Status.RUNNING: ["cancel"],
    Status.RETRYING: ["cancel", "retry", "delete"],
    Status.SUCCEEDED: ["delete"],
    Status.DEAD: ["retry", "delete"],
    Status.CANCELLED: ["retry", "delete"],
}


class AttemptRecord(Struct, frozen=True, omit_defaults=True):
    """One entry of a job's attempt log: an attempt that did not succeed, or that logged something."""

    attempt: int
    generation: int
    worker: str
    started_at: str
    ended_at: str
    outcome: str
    error: Failure | None = None
    logs: Logs | None = None


_LOG = msgspec.json.Decoder(list[AttemptRecord])
_RULE = msgspec.json.Decoder(RetryRule)
_ENCODE = msgspec.json.Encoder().encode


def settle(
    job: Job, outcome: Outcome, *, logs: Logs | None = None, now: Instant, default: RetryRule, dice: float
) -> Transition:
    """What follows from the outcome of an attempt, reported by the worker that holds the job.

    What it logged is kept with it, unless it was handed back or snoozed: then there was no attempt.
    """
    match outcome:
        case Succeeded(result):
            log = None if logs is None else _logged(job, "succeeded", now, None, logs)
            return _transition(job, Status.SUCCEEDED, result=result, attempt_log=log)
        case Failed(failure, retryable, retry_in):
            wait = None if retry_in is None else honour(retry_in, longest=MAX_WAIT)
            return _fail(
                job, failure, "failed", now, logs=logs, retryable=retryable, wait=wait, default=default, dice=dice
            )
        case TimedOut(after):
            failure = _failure("TimedOut", f"took longer than its timeout of {in_seconds(after):g} s")
            return _fail(job, failure, "timed_out", now, logs=logs, default=default, dice=dice)
        case Crashed(how):
            failure = _failure("Crashed", f"the process that ran it ended: {how}")
            return _fail(job, failure, CRASHED, now, logs=logs, wait=Duration(0), default=default, dice=dice)
        case Snoozed(delay, held):
            return _release(job, Status.SCHEDULED, now, delay=honour(delay, longest=MAX_WAIT), counted=not held)
        case Interrupted():
            return _release(job, Status.READY, now)
        case CancelledByHandler(reason):
            log = None if logs is None else _logged(job, "cancelled", now, None, logs)
            return _transition(job, Status.CANCELLED, reason=sanitize(reason, MAX_REASON_LENGTH), attempt_log=log)
        case _:
            assert_never(outcome)


def expire(job: Job, *, now: Instant, default: RetryRule, dice: float) -> Transition:
    """The lease of its holder ran out: run it again at once, or give it up when its attempts are spent."""
    failure = _failure("LeaseExpired", "its worker stopped renewing its lease: crashed, cut off or too busy")
    move = _fail(job, failure, "lease_expired", now, wait=Duration(0), default=default, dice=dice)
    return replace(move, reaped=True)


def cancel(job: Job, reason: str) -> Transition | None:
    """Cancel a waiting or running job; None when it is finished already."""
    return (
        None
        if job.status in TERMINAL
        else _transition(job, Status.CANCELLED, reason=sanitize(reason, MAX_REASON_LENGTH))
    )


def supersede(job: Job, by: JobId) -> Transition | None:
    """Another unique job takes the place of this one; None unless it waits still."""
    return cancel(job, f"replaced by job {by}") if job.status in WAITING else None


def miss(job: Job, now: Instant) -> Transition | None:
    """Its deadline passed before it could start, or start again; None while it runs, and while there is time."""
    if job.status not in WAITING or job.deadline is None or job.deadline > now:
        return None
    again = " again" if job.attempts else ""
    return cancel(job, f"its deadline, {rfc3339(job.deadline)}, passed before it could start{again}")


def retry(job: Job) -> Transition | None:
    """Make it ready now: a dead or cancelled job as a new generation, a waiting one ahead of its time.

    None when there is nothing to do: it is ready, running, succeeded, or waits for its parents.
    """
    match job.status:
        case Status.DEAD | Status.CANCELLED:
            return _transition(job, Status.READY, attempts=0, releases=0, generation=job.generation + 1)
        case Status.SCHEDULED | Status.RETRYING:
            return _transition(job, Status.READY)
        case _:
            return None


def actions(status: Status) -> list[Action]:
    """What a person may do with a job in this state."""
    return _ACTIONS[status]


def attempt_log(job: Job) -> list[AttemptRecord]:
    """The attempts that did not succeed, and those that logged something, oldest first."""
    return _LOG.decode(job.attempt_log) if job.attempt_log else []


def suspect(job: Job) -> bool:
    """Whether a process died while it ran this job: through it, or through one beside it.

    Nobody can tell which. So it runs alone from now on, until it is replayed: then it can take no other job with it.
    """
    log = job.attempt_log
    if log is None or CRASHED.encode() not in log:
        return False
    return any(each.outcome == CRASHED and each.generation == job.generation for each in attempt_log(job))


def _fail(
    job: Job,
    failure: Failure,
    how: str,
    now: Instant,
    *,
    default: RetryRule,
    dice: float,
    logs: Logs | None = None,
    retryable: bool = True,
    wait: Duration | None = None,
) -> Transition:
    failure = _stored(failure)
    log = _logged(job, how, now, failure, logs)
    mark = failure.fingerprint
    if not retryable or job.attempts >= job.max_attempts:
        return _transition(job, Status.DEAD, attempt_log=log, fingerprint=mark)
    if wait is None:
        wait = backoff(_RULE.decode(job.retry) if job.retry else default, job.attempts, dice)
    # One that waits for nothing skips the waiting state: it can be claimed from this very commit on.
    return _transition(job, Status.RETRYING if wait else Status.READY, delay=wait, attempt_log=log)


def _release(job: Job, to: Status, now: Instant, *, delay: Duration = Duration(0), counted: bool = True) -> Transition:
    if counted and job.releases >= MAX_RELEASES:
        failure = _failure("ReleasedTooOften", f"was handed back or snoozed {MAX_RELEASES} times without finishing")
        log = _logged(job, "released", now, failure)
        return _transition(job, Status.DEAD, attempt_log=log, fingerprint=fingerprint(failure.kind, failure.message))
    return _transition(job, to if delay or to is Status.READY else Status.READY, delay=delay,
                 attempts=max(0, job.attempts - 1), releases=job.releases + counted)  # fmt: skip


def _logged(job: Job, how: str, now: Instant, failure: Failure | None, logs: Logs | None = None) -> bytes:
    record = AttemptRecord(
        attempt=job.attempts,
        generation=job.generation,
        worker=worker_name(job.worker or WorkerId(0)),
        started_at=rfc3339(job.started_at or now),
        ended_at=rfc3339(now),
        outcome=how,
        error=failure,
        logs=None if logs is None else bound_logs(logs),
    )
    entries = [*attempt_log(job), record]
    with_lines = [index for index, entry in enumerate(entries) if entry.logs is not None and entry.logs.lines]
    for index in with_lines[:-MAX_ATTEMPTS_WITH_LOGS]:
        entries[index] = replace(entries[index], logs=drop_lines(entries[index].logs))
    if len(entries) > MAX_LOG_ENTRIES:
        entries = [entries[0], *entries[-(MAX_LOG_ENTRIES - 1) :]]
    return _ENCODE(entries)


def _stored(failure: Failure) -> Failure:
    """Fit to be stored, whatever the handler put into its exception."""
    return Failure(
        kind=sanitize(failure.kind, MAX_REASON_LENGTH),
        message=sanitize(failure.message, MAX_MESSAGE_LENGTH),
        traceback=sanitize(failure.traceback, MAX_TRACEBACK_LENGTH),
        fingerprint=failure.fingerprint or fingerprint(failure.kind, failure.message),
    )


def _failure(kind: str, message: str) -> Failure:
    return Failure(kind=kind, message=message, fingerprint=fingerprint(kind, message))


def _transition(
    job: Job,
    to: Status,
    *,
    attempts: int | None = None,
    releases: int | None = None,
    generation: int | None = None,
    delay: Duration = Duration(0),
    attempt_log: bytes | None = None,
    result: bytes | None = None,
    reason: str | None = None,
    fingerprint: str | None = None,
) -> Transition:
    if not can_transition(job.status, to):
        raise ValueError(f"a {job.status} job cannot become {to}: see TRANSITIONS")
    return Transition(
        id=job.id,
        fence=job.fence,
        was=job.status,
        to=to,
        worker=job.worker,
        attempts=job.attempts if attempts is None else attempts,
        job=job,
        releases=job.releases if releases is None else releases,
        generation=job.generation if generation is None else generation,
        delay=delay,
        attempt_log=attempt_log,
        result=result,
        reason=reason,
        fingerprint=fingerprint,
    )
