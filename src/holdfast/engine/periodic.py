"""The one periodic loop."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from holdfast.telemetry.emit import Emit
from holdfast.telemetry.events import LoopFailed

LONGEST_PAUSE = 2.0
"""Seconds that a loop waits after failures, however many: when the database is back, all is as it was within five."""

Pause = Callable[[], Awaitable[float]]
"""Does the work once and tells how many seconds to wait until it is wanted again."""


def pause_after(failures: int, first: float) -> float:
    """Seconds to wait after so many failures in a row: longer each time, but never so long that a return is missed."""
    return min(LONGEST_PAUSE, first * 2.0 ** min(failures - 1, 10))


async def every(name: str, once: Pause, *, stop: asyncio.Event, emit: Emit, after_failure: float = 0.5) -> None:
    """Do `once` again and again until `stop`. A failure is told and waited out, longer each time; it ends nothing."""
    failures = 0
    while not stop.is_set():
        try:
            pause = await once()
            failures = 0
        except Exception as error:  # noqa: BLE001 - a loop outlives whatever goes wrong in one round
            failures += 1
            pause = pause_after(failures, after_failure)
            emit(LoopFailed(loop=name, error=str(error), failures=failures))
        if pause > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause)
