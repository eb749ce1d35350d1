"""Gives `holdfast up --demo` something to do: a believable mix of tenants, priorities, delays and failures."""

import asyncio
import contextlib
import random
from collections.abc import Iterator

from holdfast.app import Holdfast
from holdfast.engine.engine import Engine
from holdfast.errors import HoldfastError
from holdfast.executors.demo import demo
from holdfast.model.job import JobSpec, RetryRule
from holdfast.model.time import seconds

app = Holdfast()
app.job(name="demo", queue="demo")(demo)

TENANTS = ("acme", "globex", "initech", "umbrella")
EVERY = 0.5
_FIRST = 120
_MOST_WAITING = 500
_RETRY = RetryRule(base=seconds(1), cap=seconds(8), jitter=0.3)


async def keep_busy(engine: Engine) -> None:
    """Submit jobs now and then, until cancelled; never pile them up."""
    dice = random.Random()
    specs = _specs(dice)
    await engine.submit_many([next(specs) for _ in range(_FIRST)])
    while True:
        await asyncio.sleep(EVERY)
        with contextlib.suppress(HoldfastError):
            waiting = sum(count.jobs for count in await engine.counts() if not count.status.terminal)
            if waiting < _MOST_WAITING:
                await engine.submit_many([next(specs) for _ in range(dice.randint(1, 4))])


def _specs(dice: random.Random) -> Iterator[JobSpec]:
    while True:
        kind = dice.random()
        payload: dict[str, object] = {"sleep": round(dice.expovariate(4), 3), "result": {"rows": dice.randint(1, 500)}}
        attempts, delay = 5, None
        if kind < 0.12:
            payload["fail_times"] = dice.randint(1, 3)  # succeeds in the end
        elif kind < 0.16:
            payload["fail_times"], attempts = 9, 3  # ends as a dead letter
        elif kind < 0.30:
            delay = seconds(dice.uniform(2, 30))
        tenant = dice.choices(TENANTS, weights=(6, 3, 2, 1))[0]
        yield JobSpec(
            "demo", payload, tenant=tenant, queue="demo", priority=dice.choice((0, 0, 0, 5, 10)), delay=delay,
            max_attempts=attempts, retry=_RETRY, tags=("demo",),
        )  # fmt: skip
