"""A worker as the fleet's register shows it."""

from enum import IntEnum
from typing import Literal, NamedTuple

from msgspec import Struct

from holdfast.model.ids import WorkerId
from holdfast.model.time import Duration, Instant

WorkerAction = Literal["drain"]


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
    node: str = ""
    """Of processes that one supervisor runs, the same; they end together. Empty: it is alone."""


class WorkerRow(Struct, frozen=True):
    """A registered worker and its lease."""

    info: WorkerInfo
    started_at: Instant
    expires_at: Instant
    renewed_at: Instant = Instant(0)
    """When it was last heard of."""
    memory: int | None = None
    """Bytes that it has in main memory, as it told last."""
    draining: bool = False
    """It is to end: it claims nothing more, and finishes or hands back what it holds."""


class LeaseState(NamedTuple):
    """Whose jobs alone a worker may have (None: everybody's), and for how long its lease is good; not if below 0."""

    tenant: str | None
    left: Duration
    draining: bool = False


class LeaseStatus(IntEnum):
    """What became of a lease that was to be prolonged; true if it lives."""

    LOST = 0
    KEPT = 1
    DRAINING = 2
    """It lives, and its worker is asked to end."""
