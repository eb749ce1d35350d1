"""The one description of a change to a job."""

from msgspec import Struct

from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Job
from holdfast.model.state import Status
from holdfast.model.time import Duration


class Transition(Struct, frozen=True, gc=False):
    """Move a job that still is as it was read: same state, same fence and, when running, same holder.

    Applied once or not at all. A refusal means that somebody else moved the job: read again, decide again.
    """

    id: JobId
    fence: int
    was: Status
    to: Status
    worker: WorkerId | None
    attempts: int
    job: Job
    """As it was read."""
    releases: int = 0
    generation: int = 0
    delay: Duration = Duration(0)
    """How long from now, by the database's clock, until it is due."""
    attempt_log: bytes | None = None
    """The whole log, when it grew; None leaves it as it is."""
    result: bytes | None = None
    reason: str | None = None
    fingerprint: str | None = None
    reaped: bool = False
    """Taken back from a worker whose lease ran out."""
