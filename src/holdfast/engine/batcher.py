"""Group commit without timers: what arrives while a flush is in flight goes out together with the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")

Flush = Callable[[Sequence[In]], Awaitable[Sequence[Out | BaseException]]]
"""Does many at once and answers for each: its result, or its own error."""

PATIENCE = 0.05
"""Seconds after which nobody waits for a flush any more that is under way: it may stand behind somebody's lock."""


class Batcher(Generic[In, Out]):
    """Each caller is answered after its own item was flushed, never before.

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
        """Whether one of them is about to take what waits."""
        self._under_way = 0
        """Items in all flushes together."""
        self._timer: asyncio.TimerHandle | None = None
        """Runs while some wait though there is room for a flush."""
        self._pressing = False
        """Whether they waited long enough."""

    async def put(self, item: In) -> Out:
        """Do this one, together with whatever else is waiting."""
        answer: asyncio.Future[Out] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        self._call()
        return await answer

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or under way."""
        return not self._waiting and not self._flushing

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        while self._flushing:
            await asyncio.gather(*self._flushing, return_exceptions=True)

    def _call(self) -> None:
        """Begin a flush if it is time for one."""
        if self._called or not self._waiting or len(self._flushing) >= self._width:
            return
        if self._is_time():
            self._called = True
            self._flushing.add(asyncio.create_task(self._run()))
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE, self._press)

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
