"""A window that is spent: what a refusal was decided by, and how it is told."""

from typing import NamedTuple

from holdfast.errors import RateLimited
from holdfast.model.time import Duration, Instant, in_seconds


class WindowSnapshot(NamedTuple):
    """A window as it was when something was refused for it. Whatever is accepted later only adds to it."""

    rate: int
    window: Duration
    newest: int
    """The number of the latest slice, counted from 1970."""
    costs: tuple[int, ...]
    """Latest first."""
    at: Instant


def rate_limited(
    rate: int, window: int, spent: int, wait: Duration, evidence: WindowSnapshot | None = None
) -> RateLimited:
    """The refusal of what comes too soon."""
    return RateLimited(
        f"the tenant may submit a cost of {rate:,} in {format_window(window)}, and {spent:,} of it are "
        f"spent: try again in {in_seconds(wait):.1f} s",
        retry_after=in_seconds(wait),
        evidence=evidence,
    )


def format_window(window: int) -> str:
    """A window for people."""
    return f"{in_seconds(Duration(window)):g} s"
