"""Records of running jobs: steps and progress."""

import asyncio

from holdfast.errors import Unavailable
from holdfast.model.ids import JobId
from holdfast.model.job import HeldJob
from holdfast.model.step import Step
from holdfast.store.port.store import Store

_RETRY_DELAYS_S = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Delays between tries to record a step: without a record, the step would run again."""


async def recorded(store: Store, job_id: JobId) -> list[Step]:
    """Return the steps recorded by earlier attempts."""
    return await store.single(lambda tx: tx.steps(job_id))


async def record(store: Store, held: HeldJob, step: Step) -> bool:
    """Record a step; False if the caller no longer holds the job.

    Retries while the database is unavailable or a commit's outcome is unknown; an existing record is kept.
    """
    for delay in _RETRY_DELAYS_S:
        try:
            return await store.single(lambda tx: tx.record_step(held, step))
        except Unavailable:
            await asyncio.sleep(delay)
    return await store.single(lambda tx: tx.record_step(held, step))


async def save_progress(store: Store, held: HeldJob, progress: bytes) -> bool:
    """Save a job's progress; False if the caller no longer holds it."""
    return await store.single(lambda tx: tx.save_progress(held, progress))
