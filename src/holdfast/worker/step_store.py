"""What a handler's context asks of whoever keeps its records: the engine, or something that stands in for it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from holdfast.model.job import Held
from holdfast.model.step import Step


class Session(Protocol):
    """A transaction in the engine's own database, for the caller's statements. Its guard commits with them."""

    @property
    def recorded(self) -> bytes | None:
        """What the guard holds if this was committed before: then there is nothing to do, and nothing is open."""

    async def execute(self, sql: str, *args: Any) -> int:
        """Run a statement; how many rows it touched."""

    async def fetch(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        """Run a statement; its rows."""

    def record(self, result: bytes) -> None:
        """What the guard is to hold."""


class Records(Protocol):
    """Steps, progress and transactions of jobs, each only for whoever still holds the job."""

    async def steps_of(self, held: Held) -> Sequence[Step]:
        """What earlier attempts of a job recorded, for whoever holds it now."""

    async def record_step(self, held: Held, step: Step) -> bool:
        """Record a step; what is done stays as it is. False when the job is not this holder's any more."""

    async def save_progress(self, held: Held, progress: bytes) -> bool:
        """Keep how far the job is, as JSON. False when the job is not this holder's any more."""

    def session(self, held: Held, key: str) -> AbstractAsyncContextManager[Session]:
        """A transaction that commits the caller's writes, the guard (job, key) and the check of the fence together.

        Raises `LeaseLost` when the job is not this holder's any more, `OutcomeUnknown` when the connection broke at
        the commit.
        """
