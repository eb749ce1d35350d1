"""Steps and progress of jobs, for all dialects. Writes are fenced."""

from typing import Any

from holdfast.model.ids import JobId
from holdfast.model.job import HeldJob
from holdfast.model.step import Step
from holdfast.store.port.store import Retention, StepRepository
from holdfast.store.sql.codec import step_of
from holdfast.store.sql.runner import StatementRunner


class SqlSteps(StatementRunner, StepRepository):
    """Steps and progress within a transaction."""

    async def steps(self, job_id: JobId) -> list[Step]:
        found = [step_of(row) for row in await self.rows("steps", id=job_id)]
        return sorted(found, key=lambda step: (step.recorded_at, step.key))

    async def step_page(self, job_id: JobId, after: str, limit: int) -> list[Step]:
        rows = await self.rows("step_page", id=job_id, after=self.key_text(after), limit=limit)
        return [step_of(row) for row in rows]

    async def save_progress(self, held: HeldJob, progress: bytes) -> bool:
        return await self.count("save_progress", progress=progress, **held._asdict()) == 1

    async def prune_steps(self, rule: Retention, limit: int) -> int:
        """Delete at most `limit` steps of jobs that no longer exist; return how many."""
        return await self.count("prune_steps", keep=min(rule.history, rule.dead), limit=limit)


def step_parameters(held: HeldJob, step: Step) -> dict[str, Any]:
    """Return the parameters of `record_step` except the key, whose type depends on the dialect."""
    return {**held._asdict(), "state": int(step.state), "result": step.result}
