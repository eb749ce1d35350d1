"""Claimed jobs that wait for a slot: when they are checked, and when they are released."""

import pytest

from holdfast.model.claim_check import ClaimCheck
from holdfast.worker.running.claimed_jobs import MAX_AGE_S, MAX_WAIT_S, ClaimedJobs
from tests.unit.worker.conftest import a_job


class Clock:
    """Monotonic clock that a test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def waiting(clock):
    return ClaimedJobs(monotonic=clock)


def test_jobs_are_taken_in_the_order_of_their_claims(waiting):
    first, second, third = a_job(), a_job(), a_job()
    waiting.add([first, second])
    waiting.add([third])
    assert list(waiting) == [first, second, third]
    assert [waiting.take() for _ in range(3)] == [first, second, third]
    assert len(waiting) == 0


def test_a_job_that_was_just_claimed_needs_no_check(waiting, clock):
    assert not waiting.needs_check
    waiting.add([a_job()])
    clock.now += MAX_AGE_S
    assert not waiting.needs_check


def test_a_job_that_has_waited_is_checked_and_then_may_start(waiting, clock):
    waiting.add([job := a_job()])
    clock.now += MAX_AGE_S + 0.01
    assert waiting.needs_check
    assert waiting.apply(ClaimCheck(set(), set()), [job]) == []
    assert not waiting.needs_check
    clock.now += MAX_AGE_S + 0.01
    assert waiting.needs_check


def test_a_job_that_was_not_just_claimed_is_checked_even_after_a_recent_check(waiting):
    waiting.add([job := a_job()])
    waiting.apply(ClaimCheck(set(), set()), [job])
    waiting.add([a_job()], just_claimed=False)
    waiting.take()
    assert waiting.needs_check


def test_lost_jobs_are_dropped_and_paused_jobs_are_returned(waiting):
    kept, lost, paused, both = [a_job() for _ in range(4)]
    waiting.add([kept, lost, paused, both])
    check = ClaimCheck({lost.id, both.id}, {paused.id, both.id})
    assert waiting.apply(check, list(waiting)) == [paused]
    assert list(waiting) == [kept]


def test_a_check_says_nothing_about_a_later_claim_of_the_same_job(waiting):
    """The job was taken away and claimed again while the check was on its way; it would be held and never start."""
    first = a_job(fence=1)
    again = a_job(id=first.id, fence=2)
    waiting.add([first, again])
    waiting.apply(ClaimCheck({first.id}, set()), [first])
    assert list(waiting) == [again]


def test_jobs_that_waited_too_long_are_taken_and_younger_ones_stay(waiting, clock):
    assert waiting.next_late() is None
    old, young = a_job(), a_job()
    waiting.add([old])
    clock.now += MAX_WAIT_S / 2
    waiting.add([young])
    assert waiting.next_late() == pytest.approx(MAX_WAIT_S / 2)
    assert waiting.take_late() == []
    clock.now += MAX_WAIT_S / 2
    assert waiting.next_late() == 0
    assert waiting.take_late() == [old]
    assert list(waiting) == [young]


def test_a_check_does_not_extend_how_long_a_job_waits(waiting, clock):
    waiting.add([job := a_job()])
    clock.now += MAX_WAIT_S
    waiting.apply(ClaimCheck(set(), set()), [job])
    assert waiting.take_late() == [job]


def test_clear_returns_all_jobs(waiting):
    jobs = [a_job(), a_job()]
    waiting.add(jobs)
    assert waiting.clear() == jobs
    assert waiting.clear() == []
