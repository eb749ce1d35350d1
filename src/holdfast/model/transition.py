"""State transition of a job."""

from msgspec import Struct

from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Job
from holdfast.model.state import Status
from holdfast.model.time import Duration


class Transition(Struct, frozen=True, gc=False):
    """Fenced transition: applies only if state, fence and, while running, holder are unchanged.

    Applied at most once. A refusal means that another transaction changed the job: read and decide again.
    """

    id: JobId
    fence: int
    was: Status
    to: Status
    worker: WorkerId | None
    attempts: int
    job: Job
    """The job as it was read."""
    releases: int = 0
    generation: int = 0
    delay: Duration = Duration(0)
    """Delay until the job is due, on the database's clock."""
    attempt_log: bytes | None = None
    """New attempt log; None leaves it unchanged."""
    result: bytes | None = None
    reason: str | None = None
    fingerprint: str | None = None
    reaped: bool = False
    """True if the job was reclaimed from a worker whose lease expired."""
