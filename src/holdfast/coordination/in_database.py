"""Without Redis: the unique key, the ledger and the register of the database, asked each time."""

from collections.abc import Sequence

from holdfast.coordination.port import Coordination, Figures, Keys, Known, Limiter, Registry
from holdfast.errors import RateLimited
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import NewJob
from holdfast.model.time import Duration, Instant
from holdfast.model.worker import WorkerInfo, WorkerRow
from holdfast.store.port.store import Store, Tx


class KeysInDatabase:
    """See `holdfast.coordination.port.Keys`. The insert finds out."""

    off = True

    async def find(self, jobs: Sequence[NewJob]) -> Sequence[Known | None]:
        """See the port."""
        return [None] * len(jobs)

    def note(self, job: NewJob, made: JobId, kept: Duration, at: Instant) -> None:
        """See the port."""


class LimiterInDatabase:
    """See `holdfast.coordination.port.Limiter`. The ledger decides, in the transaction of the insert."""

    async def refusal(self, tenant: str, cost: int) -> RateLimited | None:
        """See the port."""
        del tenant, cost
        return None

    def note(self, tenant: str, refused: RateLimited) -> None:
        """See the port."""

    def forget(self, tenant: str) -> None:
        """See the port."""


class RegistryInDatabase:
    """See `holdfast.coordination.port.Registry`. A lease is a row, which its renewal writes."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def beat(self, worker: WorkerId, lease: Duration, info: WorkerInfo | None = None) -> None:
        """See the port."""

    def leave(self, worker: WorkerId) -> None:
        """See the port."""

    def changed(self) -> None:
        """See the port."""

    async def fleet(self) -> tuple[Instant, list[WorkerRow]]:
        """See the port."""
        return await self._store.read(_fleet)


class InDatabase:
    """See `holdfast.coordination.port.Coordination`."""

    def __init__(self, store: Store) -> None:
        self.keys: Keys = KeysInDatabase()
        self.limiter: Limiter = LimiterInDatabase()
        self.registry: Registry = RegistryInDatabase(store)

    def figures(self) -> Figures:
        """See the port."""
        return Figures(None, 0, {})

    async def aclose(self) -> None:
        """See the port."""


def in_database(store: Store) -> Coordination:
    """What nodes share where there is no Redis."""
    return InDatabase(store)


async def _fleet(tx: Tx) -> tuple[Instant, list[WorkerRow]]:
    return await tx.now(), await tx.workers()
