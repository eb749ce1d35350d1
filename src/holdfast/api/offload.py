"""Work that would delay other requests, moved from the event loop to a thread."""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BODY_BYTES = 256 * 1024
"""Size from which a body is parsed in a thread."""

LARGE_ROW_COUNT = 2_000
"""Number of rows from which statistics are rendered in a thread."""


async def render_rows(rows: int, render: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a pure function that renders this many rows, in a thread if there are many."""
    if rows < LARGE_ROW_COUNT:
        return render(*args, **kwargs)
    return await asyncio.to_thread(render, *args, **kwargs)
