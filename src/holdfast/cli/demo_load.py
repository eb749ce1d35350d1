"""Load generator for demo mode."""

import asyncio
import contextlib
import random

from holdfast.engine import demo
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.policy.demo import job_mix

SUBMIT_INTERVAL_S = 0.5
_INITIAL_JOBS = 120
_MAX_UNFINISHED = 500


async def keep_busy(engine: Engine) -> None:
    """Submit jobs until cancelled, except while many are unfinished."""
    rng = random.Random()
    specs = job_mix(rng)
    await demo.seed(engine, _INITIAL_JOBS)
    while True:
        await asyncio.sleep(SUBMIT_INTERVAL_S)
        with contextlib.suppress(HoldfastError):
            unfinished = sum(count.jobs for count in await engine.jobs.counts() if not count.status.terminal)
            if unfinished < _MAX_UNFINISHED:
                await engine.jobs.submit_many([next(specs) for _ in range(rng.randint(1, 4))])
