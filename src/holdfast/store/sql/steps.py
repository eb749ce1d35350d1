"""Steps and progress on any of the databases: written only by a holder whose fence still stands."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from holdfast.model.ids import JobId
from holdfast.model.job import HeldJob
from holdfast.model.step import Step
from holdfast.store.port.store import Retention
from holdfast.store.sql.codec import Row, step_of


class SqlSteps(ABC):
    """The part of a transaction that keeps records. See `holdfast.store.port.store.Steps`."""

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""

    @abstractmethod
    async def record_step(self, held: HeldJob, step: Step) -> bool:
        """Record a step; return False if the holder has lost the job."""

    async def steps(self, job_id: JobId) -> list[Step]:
        found = [step_of(row) for row in await self.rows("steps", id=job_id)]
        return sorted(found, key=lambda step: (step.recorded_at, step.key))

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        return await self.count("save_progress", progress=progress, **held._asdict()) == 1

    async def prune_steps(self, rule: Retention, limit: int) -> int:
        """Remove what was recorded for jobs that are gone, at most `limit`; how many."""
        return await self.count("prune_steps", keep=min(rule.history, rule.dead), limit=limit)


def recording(held: HeldJob, step: Step) -> dict[str, Any]:
    """The parameters of the statement `record_step`, but for the key, which not all databases call a text."""
    return {**held._asdict(), "state": int(step.state), "result": step.result}
