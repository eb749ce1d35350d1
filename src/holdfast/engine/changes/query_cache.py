"""Caches that share expensive queries between concurrent callers."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from holdfast import tasks

CACHE_S = 1.0
"""Minimum lifetime of a cached result."""

COST_FACTOR = 20
"""A throttled query runs at most once per this many times its own duration."""

SLOW_S = 0.05
"""Duration above which callers get the previous result while the next query runs."""

MAX_STALE_S = 60.0
"""Additional age above which callers wait for the next result."""

_MAX_ENTRIES = 1_000

K = TypeVar("K")
V = TypeVar("V")


class CoalescingCache(Generic[K, V]):
    """Results by key, cached for a second; concurrent callers share one query."""

    def __init__(self, query: Callable[[K], Coroutine[Any, Any, V]]) -> None:
        self._query = query
        self._entries: dict[K, tuple[float, asyncio.Task[V]]] = {}

    async def get(self, key: K) -> V:
        """Return the cached result, or run the query."""
        now = time.monotonic()
        entry = self._entries.get(key)
        if entry is None or now - entry[0] > CACHE_S or _failed(entry[1]):
            if len(self._entries) >= _MAX_ENTRIES:
                self._entries = {key: kept for key, kept in self._entries.items() if now - kept[0] <= CACHE_S}
            task = tasks.start(self._query(key), name="holdfast statistics", awaited=True)
            entry = self._entries[key] = now, task
        return await asyncio.shield(entry[1])


class ThrottledQuery(Generic[V]):
    """Query that runs on demand, at most once per `COST_FACTOR` times its own duration.

    This bounds its load to a twentieth of one connection. For example, a count of ten thousand jobs is at most a second
    old, and a count of a million jobs ten seconds.
    """

    def __init__(self, query: Callable[[], Coroutine[Any, Any, V]]) -> None:
        self._query = query
        self._last: V | None = None
        self._finished_at = 0.0
        self._duration = 0.0
        self._task: asyncio.Task[V] | None = None

    async def get(self) -> V:
        """Return the last result if it is fresh enough, or run the query."""
        age = time.monotonic() - self._finished_at
        if self._last is not None and age <= max(CACHE_S, COST_FACTOR * self._duration):
            return self._last
        if self._task is None:
            self._task = tasks.start(self._run(), name="holdfast statistics", awaited=True)
        if self._last is not None and self._duration > SLOW_S and age < MAX_STALE_S + COST_FACTOR * self._duration:
            return self._last
        return await asyncio.shield(self._task)

    async def aclose(self) -> None:
        """Cancel a query in flight and wait for its end."""
        await tasks.stop(self._task)

    async def _run(self) -> V:
        began = time.monotonic()
        try:
            self._last = result = await self._query()
        finally:
            self._finished_at = time.monotonic()
            self._duration = self._finished_at - began
            self._task = None
        return result


def _failed(task: asyncio.Task[V]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
