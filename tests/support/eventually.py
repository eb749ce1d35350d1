"""Waiting for facts."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds after which a fact is given up; far longer than any takes."""


async def eventually(fact: Callable[[], Awaitable[T]], *, within: float = PATIENCE) -> T:
    """Ask again and again until the answer is true; that answer. Who waits long asks less often."""
    pause = 0.005
    async with asyncio.timeout(within):
        while not (answer := await fact()):
            await asyncio.sleep(pause)
            pause = min(0.05, 1.25 * pause)
    return answer


def awaited(fact: Callable[[], T], *, within: float = 3 * PATIENCE) -> T:
    """The same for tests of processes, which have no event loop of their own."""
    until = time.monotonic() + within
    while not (answer := fact()):
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.05)
    return answer
