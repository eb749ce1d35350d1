"""Types and codec of workers and of the job types they handle."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Any, Generic

import msgspec
from msgspec import Meta, Struct

from holdfast.model.job_type import ALL_TENANTS, JobType
from holdfast.model.time import Instant, in_seconds, rfc3339
from holdfast.model.worker import WorkerAction
from holdfast.wire.codec import invalid_cursor
from holdfast.wire.name_cursors import name_cursor, read_name_cursor
from holdfast.wire.types import Cursor, Name, Query, Time, TimeT


class WorkerFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a worker."""

    id: str
    """Id of the worker."""
    name: str
    """Name that the worker gave when it registered."""
    host: str | None
    """Null unless the caller is an administrator, like `pid`, `node` and `memory`."""
    pid: int | None
    """Id of its process."""
    node: str | None
    """Id shared by the processes of one supervisor, which drain together; null without one."""
    version: str
    queues: list[str]
    """Queues that it serves."""
    slots: int
    running: int
    """Jobs that it holds: the caller's own, or all for administrators."""
    memory: int | None
    """Resident memory of its process in bytes at the last heartbeat; null if unknown."""
    started_at: TimeT
    """Time of its registration."""
    heartbeat_age: float
    """Seconds since the last heartbeat."""
    lease_until: TimeT
    """End of its lease."""
    alive: bool
    """Its lease has not expired."""
    draining: bool
    """True if it claims no more jobs, finishes running ones, and releases the rest."""
    unresponsive_since: TimeT | None
    """Time since when its process does not respond, by its last heartbeat; null if it responds."""
    blocked_by: str | None
    """Job type whose handler blocks its event loop; null if none does.

    It is `unknown` if other code does. With `unresponsive_since`, null means that the process gives no sign of life.
    """
    actions: list[WorkerAction]
    """Actions that the caller may request now."""


class WorkerOut(WorkerFields[Time], frozen=True):
    """A worker: one incarnation of a process that runs jobs."""


class WorkerQuery(Query):
    """Page of a list of workers."""

    cursor: Cursor | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 500


class WorkerPage(Struct, frozen=True):
    """Page of registered workers, oldest first; it may be short, so follow `next_cursor`."""

    items: list[WorkerOut]
    next_cursor: str | None


class DrainOut(Struct, frozen=True):
    """Draining workers: the requested one first, then the other processes of its node."""

    items: list[WorkerOut]


class TypesQuery(Query):
    """Filter and page of a list of job types."""

    tenant: Name | None = None
    cursor: Cursor | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 500


class TypeFields(Struct, Generic[TimeT], frozen=True):
    """Fields of a job type."""

    type: str
    """Name of the type."""
    tenant: str | None
    """Tenant whose workers described it; null for workers that serve every tenant."""
    schema: dict[str, Any] | None
    """JSON Schema of the payload."""
    queue: str | None
    """Default queue of jobs that Python code enqueues."""
    queues: list[str]
    """Queues that its workers serve, or served last."""
    workers: int
    """Number of live workers that handle it."""
    last_seen: TimeT
    """Last time that a worker handled this type, accurate to a few minutes."""
    max_attempts: int | None
    """Default number of attempts; null if unknown."""
    timeout: float | None
    """Seconds."""
    priority: int | None
    """Default priority; null if unknown."""
    cost: int | None
    """Default cost; null if unknown."""


class TypeOut(TypeFields[Time], frozen=True):
    """Job type as its workers describe it. Fields that they left out are null."""


class TypePage(Struct, frozen=True):
    """Page of job types, by name; a tenant's own description replaces the shared one.

    It may be short, so follow `next_cursor`.
    """

    items: list[TypeOut]
    next_cursor: str | None


def type_out(tenant: str, about: JobType, queues: list[str], *, workers: int, last_seen: Instant) -> TypeOut:
    """Render a job type."""
    return TypeOut(
        type=about.type,
        tenant=None if tenant == ALL_TENANTS else tenant,
        schema=None if about.schema is None else msgspec.json.decode(about.schema),
        queue=about.queue,
        queues=queues,
        workers=workers,
        last_seen=rfc3339(last_seen),
        max_attempts=about.max_attempts,
        timeout=None if about.timeout is None else in_seconds(about.timeout),
        priority=about.priority,
        cost=about.cost,
    )


def worker_cursor(started_at: Instant, worker: int) -> str:
    """Return the cursor after this worker."""
    return name_cursor(f"{started_at} {worker}")


def read_worker_cursor(text: str | None) -> tuple[Instant, int]:
    """Parse a cursor into the start time and the id of the last worker. Raises `Invalid`."""
    if text is None:
        return Instant(0), 0
    parts = read_name_cursor(text).split(" ")
    if len(parts) != 2 or not all(part.isdecimal() and int(part) < _MAX_INTEGER for part in parts):
        raise invalid_cursor()
    return Instant(int(parts[0])), int(parts[1])


_MAX_INTEGER = 2**63
"""Numbers below it fit into a column of the database; the length of a cursor is bounded."""


def type_cursor(name: str, tenant: str) -> str:
    """Return the cursor after this type."""
    return urlsafe_b64encode(f"{name} {tenant}".encode()).decode().rstrip("=")


def read_type_cursor(text: str | None) -> tuple[str, str]:
    """Parse a cursor into the name and tenant of the last type."""
    if text is None:
        return "", ""
    try:
        name, space, tenant = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii").partition(" ")
    except (ValueError, binascii.Error):
        name = space = tenant = ""
    if not space or not f"{name}{tenant}".isprintable():
        raise invalid_cursor()
    return name, tenant
