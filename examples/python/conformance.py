"""Job types of the conformance kit, for `holdfast work` over HTTP.

holdfast protocol check -- holdfast work conformance:app --queues protocol:4 --processes 1
"""

import asyncio
import time
from pathlib import Path
from typing import Any

from holdfast import Context, Discard, Holdfast, Retry, Snooze

app = Holdfast()


@app.job(name="check.echo", queue="protocol")
async def echo(value: Any) -> Any:
    """Return the payload."""
    return value


@app.job(name="check.fail", queue="protocol")
async def fail(ctx: Context, times: int, message: str, retryable: bool, retry_in: float | None) -> dict[str, int]:
    """Fail the first attempts."""
    if ctx.attempt <= times:
        if not retryable:
            raise Discard(message)
        raise Retry(message, in_=retry_in)
    return {"attempts": ctx.attempt}


@app.job(name="check.snooze", queue="protocol")
async def snooze(path: str, delay: float) -> dict[str, bool]:
    """Snooze once."""
    if not Path(path).exists():
        append(path, "snoozed")
        raise Snooze(delay)
    return {"snoozed": True}


@app.job(name="check.tick", queue="protocol")
async def tick(ctx: Context, path: str, seconds: float, progress: bool) -> dict[str, int]:
    """Write a line every tenth of a second."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        append(path, f"{ctx.job.id} {ctx.fence}")
        if progress:
            await ctx.progress(passed / seconds)
        await asyncio.sleep(0.1)
    return {"fence": ctx.fence}


@app.job(name="check.steps", queue="protocol")
async def steps(ctx: Context, path: str, stop: str) -> dict[str, Any]:
    """Run one step at least once, and another at most once."""

    async def first() -> dict[str, int]:
        append(path, "first")
        return {"fence": ctx.fence}

    async def charge() -> str:
        append(path, "charge")
        if stop == "charge" and ctx.attempt == 1:
            raise Retry("stopped within the step", in_=0)
        return "charged"

    done = await ctx.step("first", first)
    if stop == "first" and ctx.attempt == 1:
        raise Retry("stopped after the first step", in_=0)
    return {"first": done, "charge": await ctx.step("charge", charge, at_most_once=True)}


@app.job(name="check.large", queue="protocol")
async def large(bytes: int) -> str:
    """Return a result of this size."""
    return "x" * bytes


def append(path: str, line: str) -> None:
    """Append a line to a file in one write."""
    with Path(path).open("a") as file:
        file.write(line + "\n")
