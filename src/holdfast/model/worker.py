"""Registered workers and their leases."""

from enum import IntEnum
from typing import Literal, NamedTuple

from msgspec import Struct

from holdfast.model.ids import WorkerId
from holdfast.model.time import Duration, Instant

WorkerAction = Literal["drain"]


class WorkerInfo(Struct, frozen=True):
    """Worker registration."""

    id: WorkerId
    name: str
    host: str
    pid: int
    version: str
    queues: str = ""
    slots: int = 0
    tenant: str | None = None
    """Tenant the worker is restricted to; None for all tenants."""
    types: tuple[str, ...] | None = None
    """Job types it handles; None if unknown."""
    node: str = ""
    """Node of the worker: processes of one supervisor share it. Empty for a single process."""


class WorkerRow(Struct, frozen=True):
    """Registered worker with its lease."""

    info: WorkerInfo
    started_at: Instant
    expires_at: Instant
    renewed_at: Instant = Instant(0)
    """Time of the last heartbeat."""
    memory: int | None = None
    """Resident memory in bytes, as last reported."""
    draining: bool = False
    """True if the worker is draining: it claims nothing and finishes or releases its jobs."""
    unresponsive_since: Instant | None = None
    """Time since when its process does not respond, as last reported; None if it responds."""
    blocked_by: str | None = None
    """Job type whose handler blocks its event loop; None if the process gives no sign of life."""


UNKNOWN_CODE = "unknown"
"""Stands for the job type if code outside of all handlers blocks an event loop."""


class Unresponsiveness(NamedTuple):
    """Report that a worker process does not respond."""

    span: Duration
    """Time for which it has not responded."""
    blocked_by: str | None = None
    """Job type whose handler blocks its event loop; None if the process gives no sign of life."""


class LeaseState(NamedTuple):
    """Tenant restriction (None for all) and remaining lease time; negative if the lease expired."""

    tenant: str | None
    left: Duration
    draining: bool = False


class LeaseStatus(IntEnum):
    """Result of a lease renewal; truthy if the lease is alive."""

    LOST = 0
    KEPT = 1
    DRAINING = 2
    """The lease is alive and the worker must drain."""
