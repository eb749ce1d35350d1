"""Job states and the table of transitions (S4)."""

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


def test_the_stored_codes_never_change() -> None:
    """Existing databases, statements and views contain them."""
    assert {status: status.code for status in Status} == STORED


def test_every_code_maps_back_to_its_status() -> None:
    assert [STATUS_OF_CODE[status.code] for status in Status] == list(Status)
    assert set(STATUS_OF_CODE) == set(Status)


def test_a_job_that_waits_for_its_key_is_ready_to_users() -> None:
    """It has its own stored code, which excludes it from the index that claims use."""
    assert AWAITING_KEY not in {status.code for status in Status}
    assert STATUS_OF_CODE[AWAITING_KEY] is Status.READY


def test_the_names_are_those_of_the_api() -> None:
    assert sorted(Status) == [
        "blocked", "cancelled", "dead", "ready", "retrying", "running", "scheduled", "succeeded",
    ]  # fmt: skip


def test_every_state_is_waiting_running_or_finished() -> None:
    assert sorted([*WAITING, Status.RUNNING, *TERMINAL]) == sorted(Status)
    assert [status for status in Status if status.terminal] == [s for s in Status if s in TERMINAL]


def test_every_state_has_transitions() -> None:
    assert set(TRANSITIONS) == set(Status)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_finished_job_changes_only_by_a_replay(status: Status) -> None:
    assert TRANSITIONS[status] == (frozenset() if status is Status.SUCCEEDED else {Status.READY})


@pytest.mark.parametrize("status", sorted(set(Status) - TERMINAL))
def test_an_unfinished_job_can_be_cancelled_and_can_reach_every_final_state(status: Status) -> None:
    assert Status.CANCELLED in TRANSITIONS[status]
    reached, queue = {status}, [status]
    while queue:
        for after in TRANSITIONS[queue.pop()] - reached:
            reached.add(after)
            queue.append(after)
    assert reached >= TERMINAL


def test_only_a_ready_job_can_start() -> None:
    assert [status for status in Status if Status.RUNNING in TRANSITIONS[status]] == [Status.READY]


def test_only_a_running_job_can_succeed_fail_or_die() -> None:
    for ending in (Status.SUCCEEDED, Status.DEAD, Status.RETRYING):
        assert [status for status in Status if ending in TRANSITIONS[status]] == [Status.RUNNING]


@pytest.mark.parametrize("was", Status)
def test_no_state_transitions_to_itself(was: Status) -> None:
    assert not can_transition(was, was)
    assert {to for to in Status if can_transition(was, to)} == TRANSITIONS[was]
