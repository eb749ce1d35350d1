"""Facts that decide whether a claim takes a job, all read on one snapshot."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.time import Duration, Instant, in_seconds


class ActivePause(NamedTuple):
    """Pause that is in effect and applies to the job."""

    kind: Literal["queue", "type", "tenant"]
    name: str
    since: Instant
    by: str = ""
    reason: str = ""
    until: Instant | None = None


class LimitFact(NamedTuple):
    """Usage of a limit that applies to the job; the job itself is not counted."""

    name: str
    """Display name, such as "queue 'mail'", "tenant 'acme'" or "key 'report:7'"."""
    room: int
    """Number of jobs that may start now."""
    used: int
    max_running: int | None
    holders: Sequence[str] = ()
    """Ids of some jobs that the limit counts."""
    frees_at: Instant | None = None
    """Time of the next token, if the rate is what blocks the job."""


class ExternalHold(NamedTuple):
    """External condition that delays a job, such as the open breaker of its destination.

    It does not prevent a claim: a worker claims the job, sees the condition and snoozes the job without consuming an
    attempt.
    """

    name: str
    why: str
    until: Instant | None = None


class JobsAhead(NamedTuple):
    """Number and cost of the jobs ahead in the lane, and the tenant's share of the queue."""

    jobs: int = 0
    cost: int = 0
    at_least: bool = False
    """The count stopped at its maximum."""
    share: float = 1.0


class ServiceRate(NamedTuple):
    """Recent service of the job's tenant in its queue: cost of attempts that ended in `span`."""

    cost: int
    span: Duration

    @property
    def per_second(self) -> float:
        """Cost per second."""
        return self.cost / in_seconds(self.span) if self.span > 0 else 0.0


class UnresponsiveWorker(NamedTuple):
    """Live worker whose process does not respond, so that it claims nothing."""

    worker: WorkerId
    since: Instant
    blocked_by: str | None = None
    """Job type whose handler blocks its event loop; None if the process gives no sign of life."""


class JobHolder(NamedTuple):
    """Worker that holds a running job."""

    slots: int
    """Number of its slots; 0 if unknown."""
    held: int
    """Number of jobs that it holds."""
    unresponsive: UnresponsiveWorker | None = None
    """Set if its process does not respond."""


class Facts(NamedTuple):
    """Facts about one job, as of `now`."""

    job: Job
    now: Instant
    lease_until: Instant | None = None
    holder: JobHolder | None = None
    """Worker that holds the job, if it is running."""
    pauses: Sequence[ActivePause] = ()
    limits: Sequence[LimitFact] = ()
    held_back: Sequence[ExternalHold] = ()
    workers: int = 0
    """Number of live workers that handle the job and respond."""
    unresponsive: Sequence[UnresponsiveWorker] = ()
    """Live workers that handle the job and do not respond."""
    last_seen: Instant | None = None
    """If there are none: the last time such a worker was seen."""
    ahead: JobsAhead = JobsAhead()
    service_rate: ServiceRate | None = None
