"""Group commit without timers: items that arrive during a flush share the next one."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from holdfast.errors import Unavailable

In = TypeVar("In")
Out = TypeVar("Out")

Flush = Callable[[Sequence[In]], Awaitable[Sequence[Out | BaseException]]]
"""Flushes many items and returns the result or the error of each."""

MAX_FLUSH_DELAY_S = 0.05
"""Start another flush after this long even if a flush in flight has not finished."""

MAX_WAIT_S = 3.0
"""Items that have waited longer when a flush fails are rejected untried.

The next flush would probably fail too.
"""


class Batcher(Generic[In, Out]):
    """Batches items; each caller gets its result after its own item was flushed.

    A lone item is flushed at once. Items that arrive during a flush wait for the next one, so that batches grow with
    the latency of the database. Up to `width` flushes run concurrently, but another one starts only when at least as
    many items wait as are in flight: half of the callers then prepare new items while the other half is flushed.
    Starting earlier would only produce small batches, which queue up at the disk because it syncs one at a time.
    """

    def __init__(self, flush: Flush[In, Out], *, max_batch_size: int, width: int = 2) -> None:
        self._flush = flush
        self._max_batch_size = max_batch_size
        self._width = width
        self._waiting: list[tuple[In, asyncio.Future[Out], float]] = []
        """Items with their callers, and when they arrived."""
        self._flushing: set[asyncio.Task[None]] = set()
        self._starting = False
        """True while a new flush task has not yet taken its batch."""
        self._in_flight = 0
        """Number of items in flight."""
        self._timer: asyncio.TimerHandle | None = None
        """Set while items wait although another flush could start."""
        self._timer_expired = False
        """True if the timer expired."""

    async def submit(self, item: In) -> Out:
        """Flush this item together with others that are waiting and return its result."""
        result: asyncio.Future[Out] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result, time.monotonic()))
        self._start_flush()
        return await result

    @property
    def idle(self) -> bool:
        """Return True if no item is waiting or in flight."""
        return not self._waiting and not self._flushing

    async def drain(self) -> None:
        """Wait until no flush is in flight."""
        while self._flushing:
            await asyncio.gather(*self._flushing, return_exceptions=True)

    def _start_flush(self) -> None:
        """Start a flush if one is due."""
        if self._starting or not self._waiting or len(self._flushing) >= self._width:
            return
        if self._is_due():
            self._starting = True
            # The set holds the reference to the task; a lone submission cannot afford the bookkeeping of `tasks`.
            self._flushing.add(asyncio.create_task(self._run(), name="holdfast flush"))
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MAX_FLUSH_DELAY_S, self._on_timer)

    def _is_due(self) -> bool:
        return self._timer_expired or len(self._waiting) >= self._in_flight

    def _on_timer(self) -> None:
        self._timer = None
        self._timer_expired = True
        self._start_flush()

    def _take_batch(self) -> list[tuple[In, asyncio.Future[Out], float]]:
        self._timer_expired = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting[: self._max_batch_size], self._waiting[self._max_batch_size :]
        return batch

    async def _run(self) -> None:
        self._starting = False
        while self._waiting and self._is_due():
            batch = self._take_batch()
            self._in_flight += len(batch)
            self._start_flush()  # the rest may fill another batch
            await self._flush_batch(batch)
            self._in_flight -= len(batch)
        # Here and not in a done callback, because a caller may submit again before a callback runs.
        if task := asyncio.current_task():
            self._flushing.discard(task)
        self._start_flush()  # or set the timer for the rest

    async def _flush_batch(self, batch: list[tuple[In, asyncio.Future[Out], float]]) -> None:
        # Drop the items of callers that were cancelled while they waited.
        batch = [entry for entry in batch if not entry[1].done()]
        if not batch:
            return
        results: Sequence[Out | BaseException]
        try:
            results = await self._flush([item for item, _, _ in batch])
        except BaseException as error:  # noqa: BLE001 - every caller must get a result, or it would wait for ever
            results = [error] * len(batch)
        if len(results) != len(batch):
            results = [RuntimeError(f"a flush of {len(batch)} items returned {len(results)} results")] * len(batch)
        if all(isinstance(result, Unavailable) for result in results):
            self._reject_late()
        for (_, future, _), result in zip(batch, results, strict=True):
            if future.done():
                continue
            if isinstance(result, BaseException):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _reject_late(self) -> None:
        """Reject items that have waited long for a flush that failed; they were not tried."""
        oldest = time.monotonic() - MAX_WAIT_S
        rejected = [future for _, future, arrived_at in self._waiting if arrived_at < oldest]
        self._waiting = [entry for entry in self._waiting if entry[2] >= oldest]
        for future in rejected:
            if not future.done():
                future.set_exception(
                    Unavailable("the database is slow or locked, and accepted nothing from this request: try again")
                )
