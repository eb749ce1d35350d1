"""What a claim of one job would meet, read at one instant: what explanations are made of."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from holdfast.model.job import Job
from holdfast.model.time import Duration, Instant, in_seconds


class ActivePause(NamedTuple):
    """A pause that holds now."""

    kind: Literal["queue", "type", "tenant"]
    name: str
    since: Instant
    by: str = ""
    reason: str = ""
    until: Instant | None = None


class LimitFact(NamedTuple):
    """How a limit stands that the job is under, reckoned without the job itself."""

    name: str
    """As people say it: queue mail, tenant acme, key report:7."""
    room: int
    """How many jobs may start now."""
    used: int
    most: int | None
    holders: Sequence[str] = ()
    frees_at: Instant | None = None
    """When its next token comes, where the rate is what leaves no room."""


class HeldBack(NamedTuple):
    """Something outside holds a job back for a while: a destination that fails, say.

    No predicate of the claim: a worker takes the job, finds it so, and lets it wait without spending an attempt.
    """

    name: str
    why: str
    until: Instant | None = None


class QueuePosition(NamedTuple):
    """What is before a job in its lane, and how much of its queue the lane gets."""

    jobs: int = 0
    cost: int = 0
    at_least: bool = False
    share: float = 1.0


class ServiceRate(NamedTuple):
    """What of the job's lane was served lately."""

    cost: int
    span: Duration

    @property
    def per_second(self) -> float:
        """Cost."""
        return self.cost / in_seconds(self.span) if self.span > 0 else 0.0


class Facts(NamedTuple):
    """All that a claim of this job would meet, read at one instant."""

    job: Job
    now: Instant
    lease_until: Instant | None = None
    pauses: Sequence[ActivePause] = ()
    limits: Sequence[LimitFact] = ()
    held_back: Sequence[HeldBack] = ()
    workers: int = 0
    """Whose lease lives and who handle it."""
    last_seen: Instant | None = None
    """When there was last one, if there is none."""
    ahead: QueuePosition = QueuePosition()
    service_rate: ServiceRate | None = None
