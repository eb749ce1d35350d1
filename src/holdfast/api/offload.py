"""Work that would delay other requests, moved from the event loop to a thread."""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from holdfast import tasks
from holdfast.wire import json

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BODY_BYTES = 256 * 1024
"""Size from which a body is parsed in a thread."""

LARGE_ROW_COUNT = 500
"""Number of rows from which a function is called in a thread."""


async def read_body(body: bytes, kind: type[T]) -> T:
    """Parse and validate a body, in a thread if it is large."""
    if len(body) < LARGE_BODY_BYTES:
        return json.read(body, kind)
    return await tasks.call_in_thread(partial(json.read, body, kind))


async def call_with_rows(rows: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that handles this many rows, in a thread if there are many."""
    if rows < LARGE_ROW_COUNT:
        return function(*args, **kwargs)
    return await tasks.call_in_thread(partial(function, *args, **kwargs))
