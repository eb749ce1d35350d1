"""A worker as the fleet's register shows it."""

from msgspec import Struct

from holdfast.model.ids import WorkerId
from holdfast.model.time import Instant


class WorkerInfo(Struct, frozen=True):
    """What a worker says of itself when it registers."""

    id: WorkerId
    name: str
    host: str
    pid: int
    version: str
    queues: str = ""
    slots: int = 0


class WorkerRow(Struct, frozen=True):
    """A registered worker and its lease."""

    info: WorkerInfo
    started_at: Instant
    expires_at: Instant
