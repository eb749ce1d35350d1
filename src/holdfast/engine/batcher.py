"""Group commit without timers: items that arrive during a flush share the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")

Flush = Callable[[Sequence[In]], Awaitable[Sequence[Out | BaseException]]]
"""Flushes many items and returns the result or the error of each."""

MAX_FLUSH_DELAY_S = 0.05
"""Longest wait for a flush in flight, which may be blocked by a lock."""


class Batcher(Generic[In, Out]):
    """Batches items; each caller gets its result after its own item was flushed.

    A lone item leaves at once. Under load, items gather while flushes are under way, so batches grow just as large as
    the database is slow. A further flush, up to `width`, leaves when as many items wait as are under way: of many
    callers one half is answered while the other half is flushed. If each left as soon as it could, three thirds would
    wait for each other at the disk, which flushes one at a time.
    """

    def __init__(self, flush: Flush[In, Out], *, largest: int, width: int = 2) -> None:
        self._flush = flush
        self._largest = largest
        self._width = width
        self._waiting: list[tuple[In, asyncio.Future[Out]]] = []
        self._flushing: set[asyncio.Task[None]] = set()
        self._called = False
        """True while a new flush task has not yet taken its batch."""
        self._under_way = 0
        """Number of items in flight."""
        self._timer: asyncio.TimerHandle | None = None
        """Set while items wait although another flush could start."""
        self._pressing = False
        """True if the timer expired."""

    async def submit(self, item: In) -> Out:
        """Flush this item together with others that are waiting and return its result."""
        result: asyncio.Future[Out] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        self._call()
        return await result

    @property
    def idle(self) -> bool:
        """Return True if no item is waiting or in flight."""
        return not self._waiting and not self._flushing

    async def drain(self) -> None:
        """Wait until no flush is in flight."""
        while self._flushing:
            await asyncio.gather(*self._flushing, return_exceptions=True)

    def _call(self) -> None:
        """Start a flush if one is due."""
        if self._called or not self._waiting or len(self._flushing) >= self._width:
            return
        if self._is_time():
            self._called = True
            self._flushing.add(asyncio.create_task(self._run()))
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MAX_FLUSH_DELAY_S, self._press)

    def _is_time(self) -> bool:
        return self._pressing or len(self._waiting) >= self._under_way

    def _press(self) -> None:
        self._timer = None
        self._pressing = True
        self._call()

    def _take(self) -> list[tuple[In, asyncio.Future[Out]]]:
        self._pressing = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        batch, self._waiting = self._waiting[: self._largest], self._waiting[self._largest :]
        return batch

    async def _run(self) -> None:
        self._called = False
        while self._waiting and self._is_time():
            batch = self._take()
            self._under_way += len(batch)
            self._call()  # there may be more than one takes
            await self._answer(batch)
            self._under_way -= len(batch)
        # Left here and not in a callback: a caller answered just now may put again before a callback runs.
        if task := asyncio.current_task():
            self._flushing.discard(task)
        self._call()  # what is left has to be called some time

    async def _answer(self, batch: list[tuple[In, asyncio.Future[Out]]]) -> None:
        # A caller that gave up while its item was still waiting is not served.
        batch = [(item, answer) for item, answer in batch if not answer.done()]
        if not batch:
            return
        results: Sequence[Out | BaseException]
        try:
            results = await self._flush([item for item, _ in batch])
        except BaseException as error:  # noqa: BLE001 - every caller must get an answer, whatever happened
            results = [error] * len(batch)
        if len(results) != len(batch):
            results = [RuntimeError(f"{len(batch)} items were flushed and {len(results)} answered")] * len(batch)
        for (_, answer), result in zip(batch, results, strict=True):
            if answer.done():
                continue
            if isinstance(result, BaseException):
                answer.set_exception(result)
            else:
                answer.set_result(result)
