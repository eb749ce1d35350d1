"""The `demo` job type, for trying things out: it sleeps, fails and returns as its payload says."""

import asyncio
import random
from typing import Any

from holdfast.worker.context.context import Context

LONGEST_SLEEP = 3_600.0


async def demo(
    sleep: float = 0.0,
    fail_times: int = 0,
    fail_rate: float = 0.0,
    result: Any = None,
    reason: str = "",
    *,
    ctx: Context,
) -> Any:
    """Sleep; fail the first `fail_times` attempts, or any with chance `fail_rate`; then return `result`."""
    await asyncio.sleep(min(max(sleep, 0.0), LONGEST_SLEEP))
    if ctx.attempt <= fail_times:
        raise RuntimeError(reason or f"attempt {ctx.attempt} of {fail_times} that are to fail")
    if random.random() < fail_rate:
        raise RuntimeError(reason or "bad luck: this attempt was to fail by chance")
    return result
