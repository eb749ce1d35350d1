"""Gives an installation in demo mode something to do."""

import asyncio
import contextlib
import random

from holdfast.engine import demo
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.policy.demo import mix

EVERY = 0.5
_FIRST = 120
_MOST_WAITING = 500


async def keep_busy(engine: Engine) -> None:
    """Submit jobs now and then, until cancelled; never pile them up."""
    dice = random.Random()
    specs = mix(dice)
    await demo.seed(engine, _FIRST)
    while True:
        await asyncio.sleep(EVERY)
        with contextlib.suppress(HoldfastError):
            waiting = sum(count.jobs for count in await engine.jobs.counts() if not count.status.terminal)
            if waiting < _MOST_WAITING:
                await engine.jobs.submit_many([next(specs) for _ in range(dice.randint(1, 4))])
