"""What becomes of a job: every outcome, every number of attempts, every state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from holdfast.model.job import Job, RetryRule
from holdfast.model.outcome import (
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
from holdfast.policy.lifecycle import MAX_LOG_ENTRIES, MAX_RELEASES, attempt_log
from holdfast.policy.retry import MAX_WAIT, backoff
from tests.unit.policy.strategies import (
    NOW,
    a_job,
    attempts,
    chances,
    failures,
    outcomes,
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


def applied(job: Job, move: Transition) -> Job:
    """The job as a store leaves it after the move."""
    assert (job.id, job.fence, job.status, job.worker) == (move.id, move.fence, move.was, move.worker)
    return replace(
        job,
        status=move.to,
        worker=job.worker if move.to in TERMINAL else None,
        attempts=move.attempts,
        releases=move.releases,
        generation=move.generation,
        attempt_log=move.attempt_log or job.attempt_log,
    )


def claimed(job: Job) -> Job:
    """The job after its next claim, which counts the attempt and raises the fence."""
    assert job.status in {Status.READY, Status.RETRYING, Status.SCHEDULED}
    return replace(job, status=Status.RUNNING, worker=a_job().worker, attempts=job.attempts + 1, fence=job.fence + 1)


class TestEveryOutcome:
    @given(running_jobs(), outcomes, chances)
    def test_is_a_move_that_the_table_allows(self, job: Job, outcome: Outcome, rand: float) -> None:
        """S4."""
        assert settle(job, outcome, rand).to in TRANSITIONS[Status.RUNNING]

    @given(running_jobs(), outcomes, chances)
    def test_names_the_row_it_was_decided_on(self, job: Job, outcome: Outcome, rand: float) -> None:
        """S7: state, fence and holder are those of the job as it was claimed."""
        for move in (settle(job, outcome, rand), expire_lease(job, rand)):
            assert (move.id, move.was, move.fence, move.worker) == (job.id, job.status, job.fence, job.worker)

    @given(running_jobs(), outcomes, chances)
    def test_leaves_room_for_another_attempt_or_ends_the_job(self, job: Job, outcome: Outcome, rand: float) -> None:
        """S8: attempts never exceed the most; a job that waits again has at least one left."""
        for move in (settle(job, outcome, rand), expire_lease(job, rand)):
            assert 0 <= move.attempts <= job.max_attempts
            assert move.to in TERMINAL or move.attempts < job.max_attempts

    @given(running_jobs(), outcomes, chances)
    def test_waits_only_where_waiting_is_what_it_does(self, job: Job, outcome: Outcome, rand: float) -> None:
        move = settle(job, outcome, rand)

        assert 0 <= move.delay <= MAX_WAIT
        assert (move.delay > 0) is (move.to in {Status.RETRYING, Status.SCHEDULED})

    @given(running_jobs(), outcomes, chances)
    def test_carries_its_generation_on(self, job: Job, outcome: Outcome, rand: float) -> None:
        assert settle(job, outcome, rand).generation == job.generation

    @pytest.mark.parametrize("status", sorted(set(Status) - {Status.RUNNING}))
    def test_is_refused_for_a_job_that_is_not_running(self, status: Status) -> None:
        with pytest.raises(ValueError, match="cannot change"):
            settle(a_job(status=status), Succeeded())


@given(running_jobs(), st.none() | st.binary(max_size=50))
def test_success_ends_it_with_its_result(job: Job, result: bytes | None) -> None:
    move = settle(job, Succeeded(result))

    assert (move.to, move.result, move.attempts, move.attempt_log) == (Status.SUCCEEDED, result, job.attempts, None)


@given(running_jobs(), texts)
def test_a_handler_may_cancel_its_own_job_and_say_why(job: Job, reason: str) -> None:
    move = settle(job, CancelledByHandler(reason))

    assert (move.to, move.reason) == (Status.CANCELLED, reason)


class TestAFailure:
    @given(running_jobs(), failures, chances)
    def test_is_tried_again_until_attempts_are_spent(self, job: Job, failure: Failure, rand: float) -> None:
        move = settle(job, Failed(failure), rand)

        assert (move.to is Status.DEAD) is (job.attempts >= job.max_attempts)
        assert move.attempts == job.attempts

    @given(running_jobs(), failures)
    def test_that_cannot_be_cured_ends_it_at_once(self, job: Job, failure: Failure) -> None:
        assert settle(job, Failed(failure, retryable=False, retry_in=seconds(5))).to is Status.DEAD

    @given(attempts, st.none() | rules(), chances)
    def test_waits_as_the_job_s_own_rule_says_or_else_the_default(
        self, attempt: int, rule: RetryRule | None, rand: float
    ) -> None:
        """S9."""
        own = None if rule is None else json.encode(rule)
        job = a_job(attempts=attempt, max_attempts=attempt + 1, retry=own)

        assert settle(job, Failed(ANY_FAILURE), rand).delay == backoff(rule or DEFAULT, attempt, rand)

    @given(spans)
    def test_may_name_its_own_wait(self, wait: Duration) -> None:
        move = settle(a_job(), Failed(ANY_FAILURE, retry_in=wait))

        assert move.delay == wait
        assert move.to is (Status.RETRYING if wait else Status.READY)

    @given(running_jobs(), failures)
    def test_is_grouped_by_its_fingerprint_when_it_ends_the_job(self, job: Job, failure: Failure) -> None:
        move = settle(job, Failed(failure, retryable=False))

        assert len(move.fingerprint or "") == 16

    def test_keeps_the_fingerprint_it_came_with(self) -> None:
        known = Failure("E", "m", fingerprint="given")

        assert settle(a_job(), Failed(known, retryable=False)).fingerprint == "given"

    def test_by_timeout_waits_like_any_other(self) -> None:
        move = settle(a_job(attempts=2), TimedOut(seconds(30)))

        assert (move.to, move.delay) == (Status.RETRYING, seconds(2))

    def test_by_a_crash_is_tried_again_at_once(self) -> None:
        move = settle(a_job(), Crashed("signal 9"))

        assert (move.to, move.delay) == (Status.READY, 0)

    @given(
        running_jobs(),
        st.one_of(st.builds(Failed, failures), st.builds(TimedOut, spans), st.builds(Crashed, st.text())),
    )
    def test_is_written_into_the_log_with_when_where_and_why(self, job: Job, outcome: Outcome) -> None:
        move = settle(job, outcome)
        (entry,) = attempt_log(replace(job, attempt_log=move.attempt_log))

        assert (entry.attempt, entry.generation) == (job.attempts, job.generation)
        assert entry.worker == f"w-{job.worker:016x}"
        assert entry.started_at == entry.ended_at == "2027-01-15T08:00:00.000000Z"
        assert entry.outcome in {"failed", "timed_out", "crashed"}
        assert entry.error is not None


class TestAnExpiredLease:
    @given(running_jobs(), chances)
    def test_runs_the_job_again_at_once_or_gives_it_up(self, job: Job, rand: float) -> None:
        """S8: a crash counts as an attempt."""
        move = expire_lease(job, rand)

        assert move.to is (Status.DEAD if job.attempts >= job.max_attempts else Status.READY)
        assert (move.delay, move.attempts, move.releases) == (0, job.attempts, job.releases)

    def test_is_told_apart_from_a_failure_in_the_log(self) -> None:
        (entry,) = attempt_log(a_job(attempt_log=expire_lease(a_job()).attempt_log))

        assert entry.outcome == "lease_expired"
        assert entry.error is not None
        assert entry.error.kind == "LeaseExpired"


@pytest.mark.parametrize("text", ["no file '\udcff'", "\ud800", "a\x00b"], ids=ascii)
def test_a_text_that_no_database_takes_does_not_keep_a_job_from_settling(text: str) -> None:
    """An undecodable file name in an error is enough to make one."""
    failed = settle(a_job(), Failed(Failure(text, text, text), retryable=False))
    crashed = settle(a_job(), Crashed(text))
    cancelled = settle(a_job(), CancelledByHandler(text))
    called_off = lifecycle.cancel(a_job(), text)

    assert failed.attempt_log
    assert crashed.attempt_log
    for move in (cancelled, called_off):
        assert move is not None
        assert b"\x00" not in (move.reason or "").encode()


releases = st.one_of(st.just(Interrupted()), st.builds(Snoozed, spans))


class TestAHandBack:
    @given(running_jobs(), releases)
    def test_spends_no_attempt(self, job: Job, outcome: Outcome) -> None:
        """S8: releases are not attempts, but they are counted."""
        move = settle(replace(job, releases=min(job.releases, MAX_RELEASES - 1)), outcome)

        assert move.attempts == job.attempts - 1
        assert move.releases == min(job.releases, MAX_RELEASES - 1) + 1
        assert move.attempt_log is None

    @given(running_jobs(), releases)
    def test_happens_a_hundred_times_and_then_no_more(self, job: Job, outcome: Outcome) -> None:
        """S8."""
        tired = replace(job, releases=MAX_RELEASES)
        move = settle(tired, outcome)
        (entry,) = attempt_log(applied(tired, move))

        assert (move.to, move.attempts, MAX_RELEASES) == (Status.DEAD, job.attempts, 100)
        assert entry.error is not None
        assert entry.error.kind == "ReleasedTooOften"

    def test_by_a_stopping_worker_is_ready_at_once(self) -> None:
        move = settle(a_job(), Interrupted())

        assert (move.to, move.delay) == (Status.READY, 0)

    @given(spans)
    def test_by_a_snooze_is_due_when_it_asked_to_be(self, delay: Duration) -> None:
        move = settle(a_job(), Snoozed(delay))

        assert (move.to, move.delay) == (Status.SCHEDULED if delay else Status.READY, delay)


def test_an_endless_snoozer_starts_a_hundred_and_one_times() -> None:
    """S8: the cap on releases bounds the starts of a job that never fails."""
    job, starts = a_job(status=Status.READY, attempts=0, worker=None), 0
    while job.status not in TERMINAL:
        job = claimed(job)
        starts += 1
        job = applied(job, settle(job, Snoozed(seconds(1))))

    assert starts == MAX_RELEASES + 1
    assert job.status is Status.DEAD


def test_a_job_that_is_held_back_from_outside_is_held_as_often_as_it_takes() -> None:
    job = a_job(status=Status.READY, attempts=0, worker=None)
    for _ in range(3 * MAX_RELEASES):
        job = claimed(job)
        job = applied(job, settle(job, Snoozed(seconds(60), held=True)))

    assert (job.status, job.attempts, job.releases) == (Status.SCHEDULED, 0, 0)


@given(st.integers(1, 30), st.lists(st.one_of(outcomes, st.none()), max_size=400))
def test_no_life_has_more_starts_than_attempts_and_releases(most: int, story: list[Outcome | None]) -> None:
    """S8: whatever happens to it; None is a worker that vanishes."""
    job, starts, released = a_job(status=Status.READY, attempts=0, max_attempts=most, worker=None), 0, 0
    for outcome in story:
        if job.status in TERMINAL:
            break
        job = claimed(job)
        starts += 1
        move = expire_lease(job) if outcome is None else settle(job, outcome)
        released += move.releases - job.releases
        job = applied(job, move)

    assert starts - released <= most
    assert released <= MAX_RELEASES
    assert job.attempts == starts - released
    assert len(attempt_log(job)) <= MAX_LOG_ENTRIES


def test_the_log_keeps_the_first_attempt_and_the_newest() -> None:
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
    """S17: a running one too; its holder's settle then misses."""
    job = a_job(status=status, worker=a_job().worker if status is Status.RUNNING else None)
    move = lifecycle.cancel(job, "not wanted")

    if status in TERMINAL:
        assert move is None
    else:
        assert move is not None
        assert (move.was, move.to, move.fence, move.worker) == (status, Status.CANCELLED, job.fence, job.worker)
        assert (move.reason, move.attempts) == ("not wanted", job.attempts)


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


@pytest.mark.parametrize("status, moves", RETRIED.items())
def test_a_retry_makes_ready_what_waits_or_ended_badly(status: Status, moves: bool) -> None:
    job = a_job(status=status, attempts=3, releases=2, generation=4)
    move = lifecycle.retry(job)

    assert (move is not None) is moves
    if move is not None:
        assert (move.to, move.delay, move.fence) == (Status.READY, 0, job.fence)


@pytest.mark.parametrize("status", [Status.DEAD, Status.CANCELLED])
def test_a_replay_is_a_new_generation_with_attempts_counted_anew(status: Status) -> None:
    """S20: and the old errors are kept."""
    dead = a_job(status=status, attempts=5, releases=7, generation=2, attempt_log=expire_lease(a_job()).attempt_log)
    move = lifecycle.retry(dead)

    assert move is not None
    assert (move.attempts, move.releases, move.generation, move.attempt_log) == (0, 0, 3, None)


@pytest.mark.parametrize("status", [Status.SCHEDULED, Status.RETRYING])
def test_a_waiting_job_run_ahead_of_its_time_keeps_its_counts(status: Status) -> None:
    move = lifecycle.retry(a_job(status=status, attempts=3, releases=2, generation=1, worker=None))

    assert move is not None
    assert (move.attempts, move.releases, move.generation) == (3, 2, 1)
