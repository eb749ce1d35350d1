"""Fills an installation with a believable mix of jobs, and clears them away."""

import contextlib
import random
from itertools import islice

from holdfast.engine.engine import Engine
from holdfast.errors import Conflict
from holdfast.model.job import JobFilter
from holdfast.policy.demo import TAG, TENANTS, mix
from holdfast.policy.lifecycle import Action


async def seed(engine: Engine, jobs: int) -> int:
    """Submit so many jobs, all at once; how many."""
    for name, quotas in TENANTS.items():
        with contextlib.suppress(Conflict):
            await engine.access.create_tenant(name, quotas)
    return len(await engine.jobs.submit_many(list(islice(mix(random.Random()), jobs))))


async def clear(engine: Engine) -> int:
    """Remove all jobs of the demo, running ones too; how many. Jobs submitted meanwhile may stay."""
    await _all(engine, "cancel")
    return await _all(engine, "delete")


async def _all(engine: Engine, action: Action) -> int:
    where, reason = JobFilter(tag=TAG), "the demo was cleared"
    bulk = await engine.jobs.apply_to_matching(action, where, reason=reason)
    changed = bulk.changed
    while bulk.rest is not None:
        bulk = await engine.jobs.apply_to_matching(action, where, before=bulk.rest, reason=reason)
        changed += bulk.changed
    return changed
