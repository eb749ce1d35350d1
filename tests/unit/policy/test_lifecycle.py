"""Job lifecycle: every outcome, number of attempts and state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from holdfast.model.job import Job, RetryRule
from holdfast.model.outcome import (
    BackendUnavailable,
    CancelledByHandler,
    Crashed,
    Failed,
    Failure,
    Interrupted,
    Outcome,
    Snoozed,
    Succeeded,
    TimedOut,
)
from holdfast.model.state import TERMINAL, TRANSITIONS, Status
from holdfast.model.time import Duration, Instant, seconds
from holdfast.model.transition import Transition
from holdfast.policy import lifecycle
from holdfast.policy.lifecycle import (
    MAX_LOG_ENTRIES,
    MAX_RELEASES,
    MAX_UNAVAILABLE,
    SUSPECT_GROUP_SIZES,
    attempt_log,
    suspect_group_size,
)
from holdfast.policy.retry import MAX_WAIT, backoff
from tests.unit.policy.strategies import (
    NOW,
    a_job,
    attempts,
    failures,
    outcomes,
    random_numbers,
    rules,
    running_jobs,
    spans,
    texts,
)

DEFAULT = RetryRule()
ANY_FAILURE = Failure("ValueError", "no such user 7")


def settle(job: Job, outcome: Outcome, rand: float = 0.5, now: Instant = NOW) -> Transition:
    return lifecycle.settle(job, outcome, now=now, default=DEFAULT, rand=rand)


def expire_lease(job: Job, rand: float = 0.5) -> Transition:
    return lifecycle.expire_lease(job, now=NOW, default=DEFAULT, rand=rand)


def applied(job: Job, transition: Transition) -> Job:
    """Return the job as a store leaves it after the transition."""
    assert (job.id, job.fence, job.status, job.worker) == (
        transition.id,
        transition.fence,
        transition.was,
        transition.worker,
    )
    return replace(
        job,
        status=transition.to,
        worker=job.worker if transition.to in TERMINAL else None,
        attempts=transition.attempts,
        releases=transition.releases,
        generation=transition.generation,
        attempt_log=transition.attempt_log or job.attempt_log,
    )


def claimed(job: Job) -> Job:
    """Return the job after its next claim, which counts the attempt and raises the fence."""
    assert job.status in {Status.READY, Status.RETRYING, Status.SCHEDULED}
    return replace(job, status=Status.RUNNING, worker=a_job().worker, attempts=job.attempts + 1, fence=job.fence + 1)


class TestEveryOutcome:
    @given(running_jobs(), outcomes, random_numbers)
    def test_is_an_allowed_transition(self, job: Job, outcome: Outcome, rand: float) -> None:
        """S4."""
        assert settle(job, outcome, rand).to in TRANSITIONS[Status.RUNNING]

    @given(running_jobs(), outcomes, random_numbers)
    def test_is_fenced_by_the_claimed_row(self, job: Job, outcome: Outcome, rand: float) -> None:
        """S7: state, fence and holder are those of the job as it was claimed."""
        for transition in (settle(job, outcome, rand), expire_lease(job, rand)):
            assert (transition.id, transition.was, transition.fence, transition.worker) == (
                job.id,
                job.status,
                job.fence,
                job.worker,
            )

    @given(running_jobs(), outcomes, random_numbers)
    def test_leaves_an_attempt_or_finishes_the_job(self, job: Job, outcome: Outcome, rand: float) -> None:
        """S8: attempts never exceed the maximum, and a job that waits again has at least one left."""
        for transition in (settle(job, outcome, rand), expire_lease(job, rand)):
            assert 0 <= transition.attempts <= job.max_attempts
            assert transition.to in TERMINAL or transition.attempts < job.max_attempts

    @given(running_jobs(), outcomes, random_numbers)
    def test_has_a_delay_only_in_a_delayed_state(self, job: Job, outcome: Outcome, rand: float) -> None:
        transition = settle(job, outcome, rand)

        assert 0 <= transition.delay <= MAX_WAIT
        assert (transition.delay > 0) is (transition.to in {Status.RETRYING, Status.SCHEDULED})

    @given(running_jobs(), outcomes, random_numbers)
    def test_keeps_the_generation(self, job: Job, outcome: Outcome, rand: float) -> None:
        assert settle(job, outcome, rand).generation == job.generation

    @pytest.mark.parametrize("status", sorted(set(Status) - {Status.RUNNING}))
    def test_is_rejected_for_a_job_that_is_not_running(self, status: Status) -> None:
        with pytest.raises(ValueError, match="cannot change"):
            settle(a_job(status=status), Succeeded())


@given(running_jobs(), st.none() | st.binary(max_size=50))
def test_success_finishes_the_job_with_its_result(job: Job, result: bytes | None) -> None:
    transition = settle(job, Succeeded(result))

    assert (transition.to, transition.result, transition.attempts, transition.attempt_log) == (
        Status.SUCCEEDED,
        result,
        job.attempts,
        None,
    )


@given(running_jobs(), texts)
def test_a_handler_can_cancel_its_job_with_a_reason(job: Job, reason: str) -> None:
    transition = settle(job, CancelledByHandler(reason))

    assert (transition.to, transition.reason) == (Status.CANCELLED, reason)


class TestAFailure:
    @given(running_jobs(), failures, random_numbers)
    def test_is_retried_until_the_last_attempt(self, job: Job, failure: Failure, rand: float) -> None:
        transition = settle(job, Failed(failure), rand)

        assert (transition.to is Status.DEAD) is (job.attempts >= job.max_attempts)
        assert transition.attempts == job.attempts

    @given(running_jobs(), failures)
    def test_that_is_not_retryable_makes_the_job_dead_at_once(self, job: Job, failure: Failure) -> None:
        assert settle(job, Failed(failure, retryable=False, retry_in=seconds(5))).to is Status.DEAD

    @given(attempts, st.none() | rules(), random_numbers)
    def test_is_delayed_by_the_rule_of_the_job_or_the_default(
        self, attempt: int, rule: RetryRule | None, rand: float
    ) -> None:
        """S9."""
        own = None if rule is None else json.encode(rule)
        job = a_job(attempts=attempt, max_attempts=attempt + 1, retry=own)

        assert settle(job, Failed(ANY_FAILURE), rand).delay == backoff(rule or DEFAULT, attempt, rand)

    @given(spans)
    def test_can_set_its_own_delay(self, wait: Duration) -> None:
        transition = settle(a_job(), Failed(ANY_FAILURE, retry_in=wait))

        assert transition.delay == wait
        assert transition.to is (Status.RETRYING if wait else Status.READY)

    @given(running_jobs(), failures)
    def test_has_a_fingerprint_when_the_job_is_dead(self, job: Job, failure: Failure) -> None:
        transition = settle(job, Failed(failure, retryable=False))

        assert len(transition.fingerprint or "") == 16

    def test_keeps_a_given_fingerprint(self) -> None:
        known = Failure("E", "m", fingerprint="given")

        assert settle(a_job(), Failed(known, retryable=False)).fingerprint == "given"

    def test_by_timeout_is_delayed_like_any_other(self) -> None:
        transition = settle(a_job(attempts=2), TimedOut(seconds(30)))

        assert (transition.to, transition.delay) == (Status.RETRYING, seconds(2))

    def test_by_repeated_crashes_makes_the_group_of_the_suspect_smaller(self) -> None:
        """P04: until it runs alone; a replayed job is no suspect."""
        job, sizes = a_job(max_attempts=9), []
        for attempt in range(1, 6):
            job = replace(job, attempts=attempt)
            sizes.append(suspect_group_size(job))
            job = replace(job, attempt_log=settle(job, Crashed("signal 9")).attempt_log)
        assert sizes == [None, *SUSPECT_GROUP_SIZES, 1, 1]
        assert suspect_group_size(replace(job, generation=1)) is None

    def test_by_a_crash_before_the_last_attempt_leaves_a_suspect_that_runs_alone(self) -> None:
        """P04, S8: another suspect cannot make it dead."""
        job = a_job(attempts=1, max_attempts=2)
        log = settle(job, Crashed("signal 9")).attempt_log
        assert suspect_group_size(replace(job, attempts=2, attempt_log=log)) == 1

    def test_by_a_crash_is_retried_at_once(self) -> None:
        transition = settle(a_job(), Crashed("signal 9"))

        assert (transition.to, transition.delay) == (Status.READY, 0)

    @given(
        running_jobs(),
        st.one_of(st.builds(Failed, failures), st.builds(TimedOut, spans), st.builds(Crashed, st.text())),
    )
    def test_is_logged_with_time_worker_and_error(self, job: Job, outcome: Outcome) -> None:
        transition = settle(job, outcome)
        (entry,) = attempt_log(replace(job, attempt_log=transition.attempt_log))

        assert (entry.attempt, entry.generation) == (job.attempts, job.generation)
        assert entry.worker == f"w-{job.worker:016x}"
        assert entry.started_at == entry.ended_at == "2027-01-15T08:00:00.000000Z"
        assert entry.outcome in {"failed", "timed_out", "crashed"}
        assert entry.error is not None


class TestAnExpiredLease:
    @given(running_jobs(), random_numbers)
    def test_makes_the_job_ready_at_once_or_dead(self, job: Job, rand: float) -> None:
        """S8: a crash counts as an attempt."""
        transition = expire_lease(job, rand)

        assert transition.to is (Status.DEAD if job.attempts >= job.max_attempts else Status.READY)
        assert (transition.delay, transition.attempts, transition.releases) == (0, job.attempts, job.releases)

    def test_has_its_own_outcome_in_the_log(self) -> None:
        (entry,) = attempt_log(a_job(attempt_log=expire_lease(a_job()).attempt_log))

        assert entry.outcome == "lease_expired"
        assert entry.error is not None
        assert entry.error.kind == "LeaseExpired"


@pytest.mark.parametrize("text", ["no file '\udcff'", "\ud800", "a\x00b"], ids=ascii)
def test_an_unstorable_text_does_not_prevent_settling(text: str) -> None:
    """An undecodable file name in an error message is such a text."""
    failed = settle(a_job(), Failed(Failure(text, text, text), retryable=False))
    crashed = settle(a_job(), Crashed(text))
    cancelled = settle(a_job(), CancelledByHandler(text))
    by_user = lifecycle.cancel(a_job(), text)

    assert failed.attempt_log
    assert crashed.attempt_log
    for transition in (cancelled, by_user):
        assert transition is not None
        assert b"\x00" not in (transition.reason or "").encode()


releases = st.one_of(st.just(Interrupted()), st.builds(Snoozed, spans))


class TestARelease:
    @given(running_jobs(), releases)
    def test_consumes_no_attempt(self, job: Job, outcome: Outcome) -> None:
        """S8: releases are not attempts, but they are counted."""
        transition = settle(replace(job, releases=min(job.releases, MAX_RELEASES - 1)), outcome)

        assert transition.attempts == job.attempts - 1
        assert transition.releases == min(job.releases, MAX_RELEASES - 1) + 1
        assert transition.attempt_log is None

    @given(running_jobs(), releases)
    def test_is_limited_to_a_hundred_times(self, job: Job, outcome: Outcome) -> None:
        """S8."""
        released = replace(job, releases=MAX_RELEASES)
        transition = settle(released, outcome)
        (entry,) = attempt_log(applied(released, transition))

        assert (transition.to, transition.attempts, MAX_RELEASES) == (Status.DEAD, job.attempts, 100)
        assert entry.error is not None
        assert entry.error.kind == "ReleasedTooOften"

    def test_by_a_stopping_worker_makes_the_job_ready_at_once(self) -> None:
        transition = settle(a_job(), Interrupted())

        assert (transition.to, transition.delay) == (Status.READY, 0)

    @given(spans)
    def test_by_a_snooze_is_due_after_its_delay(self, delay: Duration) -> None:
        transition = settle(a_job(), Snoozed(delay))

        assert (transition.to, transition.delay) == (Status.SCHEDULED if delay else Status.READY, delay)


def test_a_job_that_always_snoozes_starts_a_hundred_and_one_times() -> None:
    """S8: the cap on releases bounds the starts of a job that never fails."""
    job, starts = a_job(status=Status.READY, attempts=0, worker=None), 0
    while job.status not in TERMINAL:
        job = claimed(job)
        starts += 1
        job = applied(job, settle(job, Snoozed(seconds(1))))

    assert starts == MAX_RELEASES + 1
    assert job.status is Status.DEAD


class TestAnUnavailableDatabase:
    """F08: trouble of the engine's own database uses no attempt, for a bounded time."""

    def test_makes_the_job_run_again_after_a_growing_pause_without_counting_the_attempt(self) -> None:
        job, now, pauses = a_job(status=Status.READY, attempts=0, max_attempts=1, worker=None), NOW, []
        while now - NOW < MAX_UNAVAILABLE:
            job = claimed(job)
            transition = settle(job, BackendUnavailable(ANY_FAILURE), now=now)
            assert (transition.to, transition.attempts, transition.releases) == (Status.SCHEDULED, 0, 0)
            pauses.append(transition.delay)
            job = applied(job, transition)
            now = Instant(now + transition.delay)
        assert pauses == sorted(pauses)
        assert pauses[0] == seconds(1)
        assert pauses[-1] == seconds(30)
        (record,) = attempt_log(job)
        assert (record.outcome, record.attempt) == ("unavailable", 1)
        assert record.error is not None

        job = claimed(job)
        assert settle(job, BackendUnavailable(ANY_FAILURE), now=now).to is Status.DEAD

    def test_is_bounded_per_attempt(self) -> None:
        job = claimed(a_job(status=Status.READY, attempts=0, max_attempts=3, worker=None))
        job = claimed(applied(job, settle(job, BackendUnavailable(ANY_FAILURE))))
        late = Instant(NOW + MAX_UNAVAILABLE)
        job = applied(job, failed := settle(job, BackendUnavailable(ANY_FAILURE), now=late))
        assert (failed.to, failed.attempts) == (Status.RETRYING, 1)

        again = settle(claimed(job), BackendUnavailable(ANY_FAILURE), now=late)
        assert (again.to, again.attempts) == (Status.SCHEDULED, 1)


def test_snoozes_for_an_external_hold_are_unlimited() -> None:
    job = a_job(status=Status.READY, attempts=0, worker=None)
    for _ in range(3 * MAX_RELEASES):
        job = claimed(job)
        job = applied(job, settle(job, Snoozed(seconds(60), held=True)))

    assert (job.status, job.attempts, job.releases) == (Status.SCHEDULED, 0, 0)


@given(st.integers(1, 30), st.lists(st.one_of(outcomes, st.none()), max_size=400))
def test_a_job_never_starts_more_often_than_its_attempts_and_releases(
    maximum: int, story: list[Outcome | None]
) -> None:
    """S8: for any sequence of outcomes; None is an expired lease."""
    job = a_job(status=Status.READY, attempts=0, max_attempts=maximum, worker=None)
    starts = released = deferred = 0
    for outcome in story:
        if job.status in TERMINAL:
            break
        job = claimed(job)
        starts += 1
        transition = expire_lease(job) if outcome is None else settle(job, outcome)
        released += transition.releases - job.releases
        deferred += isinstance(outcome, BackendUnavailable)
        job = applied(job, transition)

    assert starts - released - deferred <= maximum
    assert released <= MAX_RELEASES
    assert job.attempts == starts - released - deferred
    assert len(attempt_log(job)) <= MAX_LOG_ENTRIES


def test_the_log_keeps_the_first_attempt_and_the_newest_ones() -> None:
    job = a_job(attempts=0, max_attempts=1_000, status=Status.READY)
    for _ in range(200):
        job = claimed(job)
        job = applied(job, expire_lease(job))

    kept = [entry.attempt for entry in attempt_log(job)]
    assert kept == [1, *range(152, 201)]
    assert len(kept) == MAX_LOG_ENTRIES == 50


def test_a_job_that_never_failed_has_an_empty_log() -> None:
    assert attempt_log(a_job()) == []


@pytest.mark.parametrize("status", Status)
def test_only_an_unfinished_job_can_be_cancelled(status: Status) -> None:
    """S17: a running one too; its worker's settle then has no effect."""
    job = a_job(status=status, worker=a_job().worker if status is Status.RUNNING else None)
    transition = lifecycle.cancel(job, "not wanted")

    if status in TERMINAL:
        assert transition is None
    else:
        assert transition is not None
        assert (transition.was, transition.to, transition.fence, transition.worker) == (
            status,
            Status.CANCELLED,
            job.fence,
            job.worker,
        )
        assert (transition.reason, transition.attempts) == ("not wanted", job.attempts)


RETRIED = {
    Status.BLOCKED: False,
    Status.SCHEDULED: True,
    Status.READY: False,
    Status.RUNNING: False,
    Status.RETRYING: True,
    Status.SUCCEEDED: False,
    Status.DEAD: True,
    Status.CANCELLED: True,
}


@pytest.mark.parametrize("status, retried", RETRIED.items())
def test_a_retry_makes_delayed_dead_and_cancelled_jobs_ready(status: Status, retried: bool) -> None:
    job = a_job(status=status, attempts=3, releases=2, generation=4)
    transition = lifecycle.retry(job)

    assert (transition is not None) is retried
    if transition is not None:
        assert (transition.to, transition.delay, transition.fence) == (Status.READY, 0, job.fence)


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED])
def test_a_replay_starts_a_new_generation_with_all_attempts(status: Status) -> None:
    """S20: the old errors are kept."""
    dead = a_job(status=status, attempts=5, releases=7, generation=2, attempt_log=expire_lease(a_job()).attempt_log)
    transition = lifecycle.retry(dead)

    assert transition is not None
    assert (transition.attempts, transition.releases, transition.generation, transition.attempt_log) == (0, 0, 3, None)


@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.RETRYING])
def test_a_delayed_job_that_is_run_early_keeps_its_counts(status: Status) -> None:
    transition = lifecycle.retry(a_job(status=status, attempts=3, releases=2, generation=1, worker=None))

    assert transition is not None
    assert (transition.attempts, transition.releases, transition.generation) == (3, 2, 1)
