"""Lanes, the unit of fair scheduling, and the shares of a claim."""

from typing import NamedTuple


class Lane(NamedTuple):
    """Ready jobs of one tenant in one queue at one priority."""

    queue: str
    tenant: str
    priority: int


class Share(NamedTuple):
    """Share of a claim in one lane: at most `max_jobs`, oldest first, past position `floor`."""

    lane: Lane
    max_jobs: int
    floor: int


FREED = ""
"""Tenant in a notification that a limit of the queue, or of a tenant in it, has capacity."""


class LaneReady(NamedTuple):
    """Notification that a lane has ready jobs, none of them before position `seq`."""

    lane: Lane
    seq: int
