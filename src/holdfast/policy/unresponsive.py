"""Worker processes that do not respond: stopped ones, and those with a blocked event loop."""

from holdfast.model.time import seconds
from holdfast.model.worker import UNKNOWN_CODE, Unresponsiveness

MIN_SILENCE_S = 3.0
"""Seconds without a sign of life, which is given twice a second, after which it is reported."""


def find_unresponsiveness(silence: float, blocked: float, blocked_by: str) -> Unresponsiveness | None:
    """Return how a worker process fails to respond, or None if it responds.

    Args:
        silence: Seconds without a sign of life. A silent process cannot report whether its event loop is blocked, so
            silence takes precedence.
        blocked: Seconds for which its event loop has been blocked; 0 if it runs.
        blocked_by: Job type of the blocking handler.
    """
    if silence >= MIN_SILENCE_S:
        return Unresponsiveness(seconds(silence))
    return Unresponsiveness(seconds(blocked), blocked_by) if blocked > 0 else None


def describe_unresponsive(blocked_by: str | None) -> str:
    """Return why a worker does not respond, as a clause."""
    if blocked_by is None:
        return "its process gives no sign of life"
    if blocked_by == UNKNOWN_CODE:
        return "code outside of all handlers blocks its event loop"
    return f"a handler of type {blocked_by!r} blocks its event loop"
