"""What nodes share beside the jobs, and what may be known of it without asking the database.

Whatever is answered here, the database would answer too; where there is doubt, the answer is to ask it. Nothing is
accepted here: a job is, or is not, in the transaction that inserts it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from holdfast.errors import RateLimited
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import NewJob
from holdfast.model.time import Duration, Instant
from holdfast.model.worker import WorkerInfo, WorkerRow


class Known(NamedTuple):
    """Whose an idempotency key is, and for how long it surely is."""

    id: JobId
    fingerprint: bytes
    until: Instant


class Keys(Protocol):
    """Idempotency keys that were used lately."""

    @property
    def off(self) -> bool:
        """Nothing is ever known: do not ask."""

    async def find(self, jobs: Sequence[NewJob]) -> Sequence[Known | None]:
        """Whose the keys of these jobs are, by tenant; None where the database must be asked."""

    def note(self, job: NewJob, made: JobId, kept: Duration, at: Instant) -> None:
        """This was committed at `at` as the job `made`, whose the key is for `kept`."""


class Limiter(Protocol):
    """Windows that are known to be full."""

    async def refusal(self, tenant: str, cost: int) -> RateLimited | None:
        """Why the database would refuse this now; None: ask it."""

    def note(self, tenant: str, refused: RateLimited) -> None:
        """The database refused."""

    def forget(self, tenant: str) -> None:
        """Its limits were changed."""


class Registry(Protocol):
    """Workers that are there."""

    def beat(self, worker: WorkerId, lease: Duration, info: WorkerInfo | None = None) -> None:
        """It was heard of, and its lease begins anew; `info` when it has just registered."""

    def leave(self, worker: WorkerId) -> None:
        """It is gone."""

    def changed(self) -> None:
        """More was noted of workers than that they came, were heard of or left."""

    async def fleet(self) -> tuple[Instant, list[WorkerRow]]:
        """The time, and who is registered, oldest first."""


class Figures(NamedTuple):
    """How a node stands with Redis: whether it answers (None: there is none), how often it went, what came of it."""

    up: bool | None
    lost: int
    asked: Mapping[tuple[str, str], int]


class Coordination(Protocol):
    """All of it."""

    keys: Keys
    limiter: Limiter
    registry: Registry

    def figures(self) -> Figures:
        """For metrics."""

    async def aclose(self) -> None:
        """Use it no more."""
