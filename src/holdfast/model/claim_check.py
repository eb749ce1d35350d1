"""Check of claimed jobs that have not started yet."""

from typing import NamedTuple

from holdfast.model.ids import JobId


class ClaimCheck(NamedTuple):
    """Claimed jobs that must not start."""

    lost: set[JobId]
    """Jobs that were cancelled or are held by another worker."""
    paused: set[JobId]
    """Jobs whose queue, type or tenant was paused after the claim."""
