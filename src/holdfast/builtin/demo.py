"""The `demo` job type: sleeps, fails and returns a result as its payload says."""

import asyncio
import random
from typing import Any

from holdfast.worker.context.context import Context

MAX_SLEEP_S = 3_600.0


async def demo(
    sleep: float = 0.0,
    fail_times: int = 0,
    fail_rate: float = 0.0,
    result: Any = None,
    reason: str = "",
    *,
    msg: Any = None,
    ctx: Context,
) -> Any:
    """Sleep, then fail or return `result`, or `msg` if there is no result.

    The first `fail_times` attempts fail, and later ones with probability `fail_rate`.
    """
    await asyncio.sleep(min(max(sleep, 0.0), MAX_SLEEP_S))
    if ctx.attempt <= fail_times:
        raise RuntimeError(reason or f"attempt {ctx.attempt} of {fail_times} that should fail")
    if random.random() < fail_rate:
        raise RuntimeError(reason or "this attempt failed at random (fail_rate)")
    return msg if result is None else result
