"""Worker processes that do not respond."""

import pytest

from holdfast.model.time import seconds
from holdfast.model.worker import UNKNOWN_CODE, Unresponsiveness
from holdfast.policy.unresponsive import MIN_SILENCE_S, describe_unresponsive, find_unresponsiveness


@pytest.mark.parametrize(
    "silence, blocked, found",
    [
        (0.5, 0.0, None),
        (0.5, 2.0, Unresponsiveness(seconds(2.0), "mail")),
        (MIN_SILENCE_S, 0.0, Unresponsiveness(seconds(MIN_SILENCE_S))),
        (MIN_SILENCE_S, 9.0, Unresponsiveness(seconds(MIN_SILENCE_S))),
    ],
)
def test_silence_takes_precedence_over_a_blocked_event_loop(
    silence: float, blocked: float, found: Unresponsiveness | None
) -> None:
    assert find_unresponsiveness(silence, blocked, "mail") == found


def test_the_description_names_the_handler() -> None:
    assert describe_unresponsive("mail") == "a handler of type 'mail' blocks its event loop"
    assert describe_unresponsive(UNKNOWN_CODE) == "code outside of all handlers blocks its event loop"
    assert describe_unresponsive(None) == "its process gives no sign of life"
