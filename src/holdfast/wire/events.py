"""Events of the event stream and their encoding as server-sent events."""

from typing import Literal

import msgspec
from msgspec import Struct

from holdfast.model.change_log import DELETED, JobChange, WorkerChange
from holdfast.model.ids import WorkerId, worker_name
from holdfast.model.state import STATUS_OF_CODE
from holdfast.model.time import Instant, rfc3339
from holdfast.wire.types import StatusName, Time

MEDIA_TYPE = "text/event-stream"

EventStatus = StatusName | Literal["deleted"]
ResetReason = Literal["expired", "behind", "slow", "stopping", "revoked", "old"]

_ENCODE = msgspec.json.Encoder().encode


class JobEvent(Struct, frozen=True):
    """`event: job`: a job changed its status or was deleted."""

    id: str
    """Id of the job."""
    tenant: str
    queue: str
    type: str
    status: EventStatus
    """New status."""
    attempts: int
    fence: int
    """Increases with every claim, so it orders events of a job with the same status."""
    at: Time


class JobsCount(Struct, frozen=True):
    """Number of jobs of one kind that changed to a status or were deleted."""

    tenant: str | None
    """Tenant; null for several tenants."""
    queue: str
    type: str
    status: EventStatus
    """New status."""
    jobs: int
    """Number of jobs."""


class JobsEvent(Struct, frozen=True):
    """`event: jobs`: counts instead of single events, because many jobs changed at once."""

    counts: list[JobsCount]
    """Numbers of changed jobs by tenant, queue, type and status."""


class WorkerEvent(Struct, frozen=True):
    """`event: worker`: a worker registered, drained or left; for administrators."""

    worker: str
    """Id of the worker."""
    event: str
    """Event of the worker, such as `registered` or `drained`."""
    name: str
    """Name of the worker."""
    at: Time


class ResetEvent(Struct, frozen=True):
    """`event: reset`: the stream ends or has a gap; fetch the current state again."""

    reason: ResetReason
    """Reason of the end or the gap."""


EVENTS = (JobEvent, JobsEvent, WorkerEvent, ResetEvent)
"""Types of the data of events; `event` is `job`, `jobs`, `worker` or `reset`."""


def status_name(code: int) -> EventStatus:
    """Return the name of a status code in the change log."""
    return "deleted" if code == DELETED else STATUS_OF_CODE[code].value


def job_event(change: JobChange, at: Instant) -> bytes:
    """Render the event of a job change."""
    event = JobEvent(
        id=str(change.id),
        tenant=change.tenant,
        queue=change.queue,
        type=change.type,
        status=status_name(change.status),
        attempts=change.attempt,
        fence=change.fence,
        at=rfc3339(at),
    )
    return render_event("job", event)


def worker_event(change: WorkerChange, at: Instant) -> bytes:
    """Render the event of a worker change."""
    return render_event("worker", WorkerEvent(worker_name(WorkerId(change.id)), change.event, change.name, rfc3339(at)))


def render_event(event: str, data: Struct) -> bytes:
    """Render an event without its id; encoded JSON contains no line breaks."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), _ENCODE(data))
