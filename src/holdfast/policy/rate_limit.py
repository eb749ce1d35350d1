"""Rejection of a submission that exceeds the tenant's rate quota."""

from typing import NamedTuple

from holdfast.errors import RateLimited
from holdfast.model.time import Duration, Instant, in_seconds


class WindowSnapshot(NamedTuple):
    """Usage window at the time of a rejection.

    Later submissions only add to the usage, so a cache may reject by an older window.
    """

    rate: int
    window: Duration
    newest: int
    """Number of the latest slice, counted from 1970."""
    costs: tuple[int, ...]
    """Accepted cost per slice, latest first."""
    at: Instant


def rate_limited(
    rate: int, window: int, spent: int, wait: Duration, evidence: WindowSnapshot | None = None
) -> RateLimited:
    """Return the error for a submission that exceeds the rate quota."""
    return RateLimited(
        f"the tenant may submit a cost of {rate:,} in {format_window(window)} and has used {spent:,}: "
        f"try again in {in_seconds(wait):.1f} s",
        retry_after=in_seconds(wait),
        evidence=evidence,
    )


def format_window(window: int) -> str:
    """Format the length of a window."""
    return f"{in_seconds(Duration(window)):g} s"
