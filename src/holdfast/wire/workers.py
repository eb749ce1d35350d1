"""The shapes of workers, and of the types of jobs that they handle."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from holdfast.errors import Invalid
from holdfast.model.job_type import EVERYBODY, JobType
from holdfast.model.time import Instant, in_seconds, rfc3339
from holdfast.model.worker import WorkerAction
from holdfast.wire.types import Cursor, Name, Query


class WorkerOut(Struct, frozen=True):
    """A worker: one incarnation of a process that runs jobs."""

    id: str
    name: str
    host: str | None
    """For administrators, as `pid`, `node` and `memory`."""
    pid: int | None
    node: str | None
    """The same for processes that one supervisor runs: they drain together. Null if it is alone."""
    version: str
    queues: list[str]
    slots: int
    running: int
    """Jobs that it holds: of the caller's own, the administrator's of all."""
    memory: int | None
    """Bytes of main memory that its process has, as of its last heartbeat; null where it is not known."""
    started_at: str
    heartbeat_age: float
    """Seconds since it was last heard of."""
    lease_until: str
    alive: bool
    """Its lease is good."""
    draining: bool
    """It is to end: it claims nothing more, finishes what it runs for a while, and hands back the rest."""
    actions: list[WorkerAction]
    """What the caller may ask of it now."""


class WorkerList(Struct, frozen=True):
    """All workers that are registered, oldest first."""

    items: list[WorkerOut]
    next_cursor: None = None


class DrainOut(Struct, frozen=True):
    """The workers that end: the one that was named first, then the other processes of its node."""

    items: list[WorkerOut]


class TypesQuery(Query):
    """Whose, and where to go on."""

    tenant: Name | None = None
    cursor: Cursor | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 500


class TypeOut(Struct, frozen=True):
    """A type of jobs, as whoever handles it tells. What is null was not told."""

    type: str
    tenant: str | None
    """Whose workers told it; null: those that serve every tenant."""
    schema: dict[str, Any] | None
    """JSON Schema of the payload."""
    queue: str | None
    """Where its jobs go that name no other queue, when they are enqueued from Python."""
    queues: list[str]
    """Those that its workers serve; when none are there, those that they served last."""
    workers: int
    """How many that are alive handle it."""
    last_seen: str
    """When one was last there, to within minutes."""
    max_attempts: int | None
    timeout: float | None
    """Seconds."""
    priority: int | None
    cost: int | None


class TypePage(Struct, frozen=True):
    """Types of jobs, by name. What a tenant's own workers tell of one stands in for what those of everybody tell."""

    items: list[TypeOut]
    next_cursor: str | None


def type_out(tenant: str, about: JobType, queues: list[str], *, workers: int, last_seen: Instant) -> TypeOut:
    """A type, as it is shown."""
    return TypeOut(
        type=about.type,
        tenant=None if tenant == EVERYBODY else tenant,
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


def type_cursor(name: str, tenant: str) -> str:
    """Where the next page begins."""
    return urlsafe_b64encode(f"{name} {tenant}".encode()).decode().rstrip("=")


def read_type_cursor(text: str | None) -> tuple[str, str]:
    """A cursor as a page gave it: the name and the tenant of its last type."""
    if text is None:
        return "", ""
    try:
        name, space, tenant = urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode("ascii").partition(" ")
    except (ValueError, binascii.Error):
        name = space = tenant = ""
    if not space or not f"{name}{tenant}".isprintable():
        raise Invalid("cursor: give the `next_cursor` of the page before, as it is", pointer="/cursor")
    return name, tenant
