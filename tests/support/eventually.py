"""Wait for conditions."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

TIMEOUT_S = 30.0
"""Time after which waiting fails; much longer than any condition needs."""


async def eventually(fact: Callable[[], Awaitable[T]], *, within: float = TIMEOUT_S) -> T:
    """Poll until `fact` returns a true value, with increasing pauses; return that value."""
    pause = 0.005
    async with asyncio.timeout(within):
        while not (value := await fact()):
            await asyncio.sleep(pause)
            pause = min(0.05, 1.25 * pause)
    return value


def awaited(fact: Callable[[], T], *, within: float = 3 * TIMEOUT_S) -> T:
    """Poll like `eventually`, in tests without an event loop."""
    until = time.monotonic() + within
    while not (value := fact()):
        assert time.monotonic() < until, "the condition did not become true in time"
        time.sleep(0.05)
    return value
