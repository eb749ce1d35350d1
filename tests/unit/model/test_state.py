"""The states of a job and the one table of moves (S4)."""

import pytest

from holdfast.model.state import AWAITING_KEY, STATUS_OF_CODE, TERMINAL, TRANSITIONS, WAITING, Status, can_transition

STORED = {
    Status.READY: 0,
    Status.RUNNING: 1,
    Status.SUCCEEDED: 2,
    Status.DEAD: 3,
    Status.CANCELLED: 4,
    Status.SCHEDULED: 5,
    Status.RETRYING: 6,
    Status.BLOCKED: 7,
}


def test_the_codes_are_those_that_stand_in_every_database() -> None:
    """They are stored, and the statements and views spell them out: they never change."""
    assert {status: status.code for status in Status} == STORED


def test_a_code_leads_back_to_its_status() -> None:
    assert [STATUS_OF_CODE[status.code] for status in Status] == list(Status)
    assert set(STATUS_OF_CODE) == set(Status)


def test_a_job_that_waits_for_its_key_is_ready_to_users() -> None:
    """It is stored under a code of its own, outside of the index that claims ride."""
    assert AWAITING_KEY not in {status.code for status in Status}
    assert STATUS_OF_CODE[AWAITING_KEY] is Status.READY


def test_the_words_are_those_of_the_api() -> None:
    assert sorted(Status) == [
        "blocked", "cancelled", "dead", "ready", "retrying", "running", "scheduled", "succeeded",
    ]  # fmt: skip


def test_every_state_is_waiting_running_or_finished() -> None:
    assert sorted([*WAITING, Status.RUNNING, *TERMINAL]) == sorted(Status)
    assert [status for status in Status if status.terminal] == [s for s in Status if s in TERMINAL]


def test_every_state_has_its_moves() -> None:
    assert set(TRANSITIONS) == set(Status)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_finished_job_moves_only_by_a_replay(status: Status) -> None:
    assert TRANSITIONS[status] == (frozenset() if status is Status.SUCCEEDED else {Status.READY})


@pytest.mark.parametrize("status", sorted(set(Status) - TERMINAL))
def test_whatever_is_unfinished_can_be_cancelled_and_can_end_well(status: Status) -> None:
    assert Status.CANCELLED in TRANSITIONS[status]
    reached, look = {status}, [status]
    while look:
        for after in TRANSITIONS[look.pop()] - reached:
            reached.add(after)
            look.append(after)
    assert reached >= TERMINAL


def test_only_a_ready_job_starts_to_run() -> None:
    assert [status for status in Status if Status.RUNNING in TRANSITIONS[status]] == [Status.READY]


def test_only_a_running_job_succeeds_or_dies() -> None:
    for ending in (Status.SUCCEEDED, Status.DEAD, Status.RETRYING):
        assert [status for status in Status if ending in TRANSITIONS[status]] == [Status.RUNNING]


@pytest.mark.parametrize("was", Status)
def test_no_state_follows_itself(was: Status) -> None:
    assert not can_transition(was, was)
    assert {to for to in Status if can_transition(was, to)} == TRANSITIONS[was]
