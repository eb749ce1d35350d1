"""F14: signs that a worker does not run a job that it holds."""

import pytest

from holdfast.policy.unknown_jobs import why_not_run


@pytest.mark.parametrize(
    "age, timeout, slots, held, expected",
    [
        (3_600, None, 4, 4, None),
        (3_600, None, 0, 9, None),
        (30, None, 4, 5, None),
        (90, None, 4, 5, "its worker holds more jobs than it has slots"),
        (90, 60, 4, 1, None),
        (150, 60, 4, 1, "it is 90 s past its timeout, and its worker would have ended it"),
    ],
    ids=["long job", "unknown slots", "claimed ahead", "too many", "just timed out", "past its timeout"],
)
def test_a_job_is_doubted_if_its_worker_cannot_run_it(
    age: float, timeout: float | None, slots: int, held: int, expected: str | None
) -> None:
    assert why_not_run(age, timeout, slots=slots, held=held) == expected
