"""What a stream of events carries, and how it is written: server-sent events with JSON in them."""

from typing import Literal

import msgspec
from msgspec import Struct

from holdfast.model.change_log import DELETED, JobChange, WorkerChange
from holdfast.model.ids import WorkerId, worker_name
from holdfast.model.state import STATUS_OF_CODE
from holdfast.model.time import Instant, rfc3339
from holdfast.wire.types import StatusName

MEDIA_TYPE = "text/event-stream"

EventStatus = StatusName | Literal["deleted"]

_ENCODE = msgspec.json.Encoder().encode


class JobEvent(Struct, frozen=True):
    """`event: job`: one job came into a state, or was deleted."""

    id: str
    tenant: str
    queue: str
    type: str
    status: EventStatus
    attempts: int
    fence: int
    """Rises with every claim: of two events of a job in the same state, the one with the higher fence is newer."""
    at: str


class JobsCount(Struct, frozen=True):
    """How many jobs of one kind came into a state, or were deleted."""

    tenant: str | None
    """None: of several tenants."""
    queue: str
    type: str
    status: EventStatus
    jobs: int


class JobsEvent(Struct, frozen=True):
    """`event: jobs`: so many changed that they are counted and not named."""

    counts: list[JobsCount]


class WorkerEvent(Struct, frozen=True):
    """`event: worker`: a worker came or went. For administrators."""

    worker: str
    event: str
    name: str
    at: str


class ResetEvent(Struct, frozen=True):
    """`event: reset`: what lies between is not known any more: fetch anew what is shown."""

    reason: Literal["expired", "behind", "slow", "stopping", "revoked", "old"]


def status_name(code: int) -> EventStatus:
    """What a row of the feed tells of a job, by its name."""
    return "deleted" if code == DELETED else STATUS_OF_CODE[code].value


def job_event(change: JobChange, at: Instant) -> bytes:
    """One change."""
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
    """A worker came or went."""
    return render_event("worker", WorkerEvent(worker_name(WorkerId(change.id)), change.event, change.name, rfc3339(at)))


def render_event(event: str, data: Struct) -> bytes:
    """An event, but for its id. JSON has no line breaks of its own."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), _ENCODE(data))
