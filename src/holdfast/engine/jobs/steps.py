"""Records of running jobs: steps and progress."""

import asyncio

from holdfast.errors import Unavailable
from holdfast.model.ids import JobId
from holdfast.model.job import HeldJob
from holdfast.model.step import Step
from holdfast.store.port.store import Store

_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds between retries; a step whose effect is not recorded would run again."""


async def recorded(store: Store, job_id: JobId) -> list[Step]:
    """Return the steps recorded by earlier attempts."""
    return await store.single(lambda tx: tx.steps(job_id))


async def record(store: Store, held: HeldJob, step: Step) -> bool:
    """Record a step; False if the caller no longer holds the job.

    Retries while the database is unavailable or a commit's outcome is unknown; an existing record is kept.
    """
    for pause in _PAUSES:
        try:
            return await store.single(lambda tx: tx.record_step(held, step))
        except Unavailable:
            await asyncio.sleep(pause)
    return await store.single(lambda tx: tx.record_step(held, step))


async def save_progress(store: Store, held: HeldJob, progress: bytes) -> bool:
    """Save a job's progress; False if the caller no longer holds it."""
    return await store.single(lambda tx: tx.save_progress(held, progress))
