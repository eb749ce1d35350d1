"""What a running job leaves behind: steps, progress, and the caller's own transactions."""

import asyncio

from holdfast.errors import Unavailable
from holdfast.model.ids import JobId
from holdfast.model.job import Held
from holdfast.model.step import Step
from holdfast.store.port.store import Store

_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds between tries to record a step whose effect has happened: an unrecorded one happens again."""


async def recorded(store: Store, job_id: JobId) -> list[Step]:
    """What earlier attempts recorded."""
    return await store.single(lambda tx: tx.steps(job_id))


async def record(store: Store, held: Held, step: Step) -> bool:
    """Record a step; False when the job is not this holder's any more.

    Tries again while the database is away, and when it is not known whether a commit took place: a record that is
    there stays as it is.
    """
    for pause in _PAUSES:
        try:
            return await store.single(lambda tx: tx.record_step(held, step))
        except Unavailable:
            await asyncio.sleep(pause)
    return await store.single(lambda tx: tx.record_step(held, step))


async def save_progress(store: Store, held: Held, progress: bytes) -> bool:
    """Keep how far a job is; False when it is not this holder's any more."""
    return await store.single(lambda tx: tx.save_progress(held, progress))
