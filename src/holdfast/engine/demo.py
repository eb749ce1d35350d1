"""Fill an installation with demo jobs, and remove them."""

import contextlib
import random
from itertools import islice

from holdfast.engine.changes.rollups import remove_stats
from holdfast.engine.engine import Engine
from holdfast.errors import Conflict
from holdfast.model.decoded_job import Action
from holdfast.model.job import JobFilter
from holdfast.policy.demo import TAG, TENANTS, TYPES, job_mix


async def seed(engine: Engine, jobs: int) -> int:
    """Create the demo tenants, submit this many jobs in one batch, and return their number."""
    for name, quotas in TENANTS.items():
        with contextlib.suppress(Conflict):
            await engine.access.create_tenant(name, quotas)
    return len(await engine.jobs.submit_many(list(islice(job_mix(random.Random()), jobs))))


async def clear(engine: Engine) -> int:
    """Cancel and delete all demo jobs with their statistics; return the number deleted.

    Jobs submitted meanwhile may remain.
    """
    await _apply_to_all(engine, "cancel")
    deleted = await _apply_to_all(engine, "delete")
    await remove_stats(engine.store, TENANTS, TYPES)
    return deleted


async def _apply_to_all(engine: Engine, action: Action) -> int:
    where, reason = JobFilter(tag=TAG), "the demo was cleared"
    bulk = await engine.jobs.apply_to_matching(action, where, reason=reason)
    changed = bulk.changed
    while bulk.cursor is not None:
        bulk = await engine.jobs.apply_to_matching(action, where, before=bulk.cursor, reason=reason)
        changed += bulk.changed
    return changed
