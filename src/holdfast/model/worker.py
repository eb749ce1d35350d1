"""A worker as the fleet's register shows it."""

from typing import NamedTuple

from msgspec import Struct

from holdfast.model.ids import WorkerId
from holdfast.model.time import Duration, Instant


class WorkerInfo(Struct, frozen=True):
    """What a worker says of itself when it registers."""

    id: WorkerId
    name: str
    host: str
    pid: int
    version: str
    queues: str = ""
    slots: int = 0
    tenant: str | None = None
    """Whose jobs alone it may have; None: everybody's."""
    types: tuple[str, ...] | None = None
    """Which types of jobs it has handlers for; None: any, as far as is known."""


class WorkerRow(Struct, frozen=True):
    """A registered worker and its lease."""

    info: WorkerInfo
    started_at: Instant
    expires_at: Instant
    renewed_at: Instant = Instant(0)
    """When it was last heard of."""


class LeaseState(NamedTuple):
    """Whose jobs alone a worker may have (None: everybody's), and for how long its lease is good; not if below 0."""

    tenant: str | None
    left: Duration
