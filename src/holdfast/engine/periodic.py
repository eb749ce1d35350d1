"""Periodic loop that survives failures of its tick."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from holdfast.engine.outages import OutageMonitor, is_outage
from holdfast.telemetry.emit import Emit
from holdfast.telemetry.events import LoopFailed

MAX_DELAY_S = 2.0
"""Longest delay after failures, so that every loop resumes within five seconds of an outage."""

Tick = Callable[[], Awaitable[float]]
"""Does the work once and returns the seconds to wait before the next call."""


def failure_delay(failures: int, first: float) -> float:
    """Return the delay in seconds after consecutive failures: exponential, with a cap."""
    return min(MAX_DELAY_S, first * 2.0 ** min(failures - 1, 10))


async def run_periodically(
    name: str, tick: Tick, *, stop: asyncio.Event, emit: Emit, outages: OutageMonitor, after_failure: float = 0.5
) -> None:
    """Call `tick` until `stop` is set.

    A failure is emitted as `LoopFailed` and followed by a growing delay; it does not end the loop.

    Args:
        name: Name of the loop in events.
        tick: The work.
        stop: Ends the loop.
        emit: Sink of the events.
        outages: Monitor that all loops of a process share.
        after_failure: Seconds to wait after the first failure.
    """
    failures = 0
    while not stop.is_set():
        began = outages.now()
        try:
            delay = await tick()
            failures = 0
            outages.succeeded(began)
        except Exception as error:  # noqa: BLE001 - a loop must survive any failure of one tick
            failures += 1
            delay = failure_delay(failures, after_failure)
            if is_outage(error):
                outages.failed(error)
            emit(LoopFailed(loop=name, error=str(error), failures=failures, unavailable=is_outage(error)))
        if delay > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), delay)
