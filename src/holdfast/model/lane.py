"""Lanes: what fairness reads and what a claim is asked for."""

from typing import NamedTuple


class Lane(NamedTuple):
    """Ready jobs of one tenant in one queue at one priority."""

    queue: str
    tenant: str
    priority: int


class Share(NamedTuple):
    """What a claim may take from one lane: at most `quota` jobs, oldest first, past position `floor`."""

    lane: Lane
    quota: int
    floor: int


FREED = ""
"""In the place of a tenant in news: a limit of the queue, or of a tenant that had jobs in it, may have room again."""


class LaneReady(NamedTuple):
    """There are ready jobs in a lane; none of those it tells of lies before position `seq`."""

    lane: Lane
    seq: int
