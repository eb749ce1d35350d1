"""Job lifecycle: pure functions that map a job and an event to the transition that follows."""

from typing import assert_never

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from holdfast.model.decoded_job import Action
from holdfast.model.ids import JobId, WorkerId, worker_name
from holdfast.model.job import Job, RetryRule
from holdfast.model.outcome import (
    BackendUnavailable,
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
from holdfast.model.time import Duration, Instant, in_seconds, parse_rfc3339, rfc3339, seconds
from holdfast.model.transition import Transition
from holdfast.policy.fingerprint import fingerprint
from holdfast.policy.logs import bound_logs, drop_lines
from holdfast.policy.retry import MAX_WAIT, backoff, clamp_wait
from holdfast.policy.text import sanitize

MAX_RELEASES = 100
"""Times a job may be released or snoozed without consuming an attempt."""

MAX_UNAVAILABLE = seconds(600)
"""Time for which attempts that fail because holdfast's database is unavailable do not count."""

MIN_UNAVAILABLE_PAUSE, MAX_UNAVAILABLE_PAUSE = seconds(1), seconds(30)
"""Bounds of the pause after such an attempt, which is half of the time since the first one."""

MAX_LOG_ENTRIES = 50
"""Entries kept in the attempt log: the first and the newest ones."""

MAX_ATTEMPTS_WITH_LOGS = 10
"""Attempts, counted from the newest, whose log lines are kept."""

UNAVAILABLE = "unavailable"
"""Recorded outcome of the first attempt in a row that could not reach holdfast's database."""

CRASHED = "crashed"

SUSPECT_GROUP_SIZES = (32, 4)
"""Largest number of suspects in a job process after their first and second crash.

Later they run alone. Larger steps than halving: hundreds of suspects start again at once, and a bystander loses at most
three attempts.
"""
"""Recorded outcome of an attempt whose process died."""

MAX_MESSAGE_LENGTH = 2_000
MAX_TRACEBACK_LENGTH = 8_000
MAX_REASON_LENGTH = 500


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
    """Entry of a job's attempt log: an attempt that did not succeed, or that wrote log lines."""

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
    job: Job, outcome: Outcome, *, logs: Logs | None = None, now: Instant, default: RetryRule, rand: float
) -> Transition:
    """Return the transition for the outcome of an attempt.

    The attempt's log lines are kept unless the job was released or snoozed, because then no attempt is consumed.

    Args:
        job: The job as it was claimed.
        outcome: Outcome reported by the worker that holds the job.
        logs: Log lines of the attempt.
        now: Current time.
        default: Retry rule for jobs without their own.
        rand: Uniform random number in [0, 1), for the jitter of the retry delay.
    """
    match outcome:
        case Succeeded(result):
            log = None if logs is None else _append_record(job, "succeeded", now, None, logs)
            return _transition(job, Status.SUCCEEDED, result=result, attempt_log=log)
        case Failed(failure, retryable, retry_in):
            wait = None if retry_in is None else clamp_wait(retry_in, maximum=MAX_WAIT)
            return _fail(
                job, failure, "failed", now, logs=logs, retryable=retryable, wait=wait, default=default, rand=rand
            )
        case TimedOut(after):
            failure = _failure("TimedOut", f"exceeded its timeout of {in_seconds(after):g} s")
            return _fail(job, failure, "timed_out", now, logs=logs, default=default, rand=rand)
        case Crashed(how):
            failure = _failure("Crashed", f"the process that ran it ended: {how}")
            return _fail(job, failure, CRASHED, now, logs=logs, wait=Duration(0), default=default, rand=rand)
        case Snoozed(delay, held):
            return _release(job, Status.SCHEDULED, now, delay=clamp_wait(delay, maximum=MAX_WAIT), counted=not held)
        case Interrupted(started):
            return _release(job, Status.READY, now, counted=started)
        case BackendUnavailable(failure):
            return _defer(job, failure, now, logs=logs, default=default, rand=rand)
        case CancelledByHandler(reason):
            log = None if logs is None else _append_record(job, "cancelled", now, None, logs)
            return _transition(job, Status.CANCELLED, reason=sanitize(reason, MAX_REASON_LENGTH), attempt_log=log)
        case _:
            assert_never(outcome)


def expire_lease(job: Job, *, now: Instant, default: RetryRule, rand: float) -> Transition:
    """Make a running job whose lease expired ready again, or dead after its last attempt."""
    failure = _failure(
        "LeaseExpired", "its worker stopped renewing its lease: it crashed, was cut off or was overloaded"
    )
    transition = _fail(job, failure, "lease_expired", now, wait=Duration(0), default=default, rand=rand)
    return replace(transition, reaped=True)


def cancel(job: Job, reason: str) -> Transition | None:
    """Cancel a waiting or running job; None if it has finished."""
    return (
        None
        if job.status in TERMINAL
        else _transition(job, Status.CANCELLED, reason=sanitize(reason, MAX_REASON_LENGTH))
    )


def supersede(job: Job, by: JobId) -> Transition | None:
    """Cancel a waiting job that another with its unique key replaces; None if it has started."""
    return cancel(job, f"replaced by job {by}") if job.status in WAITING else None


def miss_deadline(job: Job, now: Instant) -> Transition | None:
    """Cancel a waiting job whose start deadline has passed; None if it is not overdue."""
    if job.status not in WAITING or job.deadline is None or job.deadline > now:
        return None
    again = " again" if job.attempts else ""
    return cancel(job, f"its deadline, {rfc3339(job.deadline)}, passed before it could start{again}")


def retry(job: Job) -> Transition | None:
    """Make a job ready now.

    A dead or cancelled job starts a new generation; a scheduled or retrying one becomes due at once.

    Returns None for a job that is ready, running, succeeded or blocked.
    """
    match job.status:
        case Status.DEAD | Status.CANCELLED:
            return _transition(job, Status.READY, attempts=0, releases=0, generation=job.generation + 1)
        case Status.SCHEDULED | Status.RETRYING:
            return _transition(job, Status.READY)
        case _:
            return None


def actions(status: Status) -> list[Action]:
    """Return the actions that a user may apply to a job in this state."""
    return _ACTIONS[status]


def attempt_log(job: Job) -> list[AttemptRecord]:
    """Decode the attempt log, oldest entry first."""
    return _LOG.decode(job.attempt_log) if job.attempt_log else []


def suspect_group_size(job: Job) -> int | None:
    """Return the size of the group in which a crash suspect runs; None for other jobs.

    A suspect had started in a process that died, in its current generation: it or a neighbour caused the crash. Groups
    get smaller with each crash, which isolates the cause. A suspect runs alone in its last attempt, so that no job is
    dead because of another suspect.
    """
    log = job.attempt_log
    if log is None or CRASHED.encode() not in log:
        return None
    crashes = sum(each.outcome == CRASHED and each.generation == job.generation for each in attempt_log(job))
    if not crashes:
        return None
    if job.attempts >= job.max_attempts or crashes > len(SUSPECT_GROUP_SIZES):
        return 1
    return SUSPECT_GROUP_SIZES[crashes - 1]


def _fail(
    job: Job,
    failure: Failure,
    how: str,
    now: Instant,
    *,
    default: RetryRule,
    rand: float,
    logs: Logs | None = None,
    retryable: bool = True,
    wait: Duration | None = None,
) -> Transition:
    failure = _sanitized(failure)
    log = _append_record(job, how, now, failure, logs)
    if not retryable or job.attempts >= job.max_attempts:
        return _transition(job, Status.DEAD, attempt_log=log, fingerprint=failure.fingerprint)
    if wait is None:
        wait = backoff(_RULE.decode(job.retry) if job.retry else default, job.attempts, rand)
    # Without a delay the job skips the retrying state, so that it can be claimed as soon as this commits.
    return _transition(job, Status.RETRYING if wait else Status.READY, delay=wait, attempt_log=log)


def _release(job: Job, to: Status, now: Instant, *, delay: Duration = Duration(0), counted: bool = True) -> Transition:
    if counted and job.releases >= MAX_RELEASES:
        failure = _failure("ReleasedTooOften", f"was released or snoozed {MAX_RELEASES} times without finishing")
        log = _append_record(job, "released", now, failure)
        return _transition(job, Status.DEAD, attempt_log=log, fingerprint=fingerprint(failure.kind, failure.message))
    return _transition(
        job,
        to if delay else Status.READY,
        delay=delay,
        attempts=max(0, job.attempts - 1),
        releases=job.releases + counted,
    )


def _defer(
    job: Job, failure: Failure, now: Instant, *, logs: Logs | None, default: RetryRule, rand: float
) -> Transition:
    """Run a job again after a pause without counting the attempt, for at most `MAX_UNAVAILABLE`.

    The bound is for handlers that cause the error themselves. The first attempt in a row is recorded; its time is
    where the bound begins.
    """
    first = next(iter(attempt_log(job)[-1:]), None)
    if first is None or (first.outcome, first.attempt, first.generation) != (UNAVAILABLE, job.attempts, job.generation):
        elapsed, log = 0, _append_record(job, UNAVAILABLE, now, _sanitized(failure), logs)
    else:
        elapsed, log = now - parse_rfc3339(first.ended_at), None
    if elapsed >= MAX_UNAVAILABLE:
        return _fail(job, failure, "failed", now, logs=logs, default=default, rand=rand)
    pause = min(MAX_UNAVAILABLE_PAUSE, max(MIN_UNAVAILABLE_PAUSE, elapsed // 2))
    return _transition(
        job,
        Status.SCHEDULED,
        delay=Duration(round(pause * (0.5 + rand))),
        attempts=max(0, job.attempts - 1),
        attempt_log=log,
    )


def _append_record(job: Job, how: str, now: Instant, failure: Failure | None, logs: Logs | None = None) -> bytes:
    """Return the encoded attempt log with one more record, within the bounds of the log."""
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


def _sanitized(failure: Failure) -> Failure:
    """Return the failure with storable texts; handlers can put anything into an exception."""
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
        raise ValueError(f"job {job.id} cannot change from {job.status} to {to}: see holdfast.model.state.TRANSITIONS")
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
