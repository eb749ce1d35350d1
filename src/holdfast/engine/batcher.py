"""Group commit without timers: what arrives while a flush is in flight goes out together with the next one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")

Flush = Callable[[Sequence[In]], Awaitable[Sequence[Out | BaseException]]]
"""Does many at once and answers for each: its result, or its own error."""


class Batcher(Generic[In, Out]):
    """Each caller is answered after its own item was flushed, never before.

    A lone item leaves at once. Under load, items gather while `width` flushes are under way, so batches grow just as
    large as the database is slow.
    """

    def __init__(self, flush: Flush[In, Out], *, largest: int, width: int = 2) -> None:
        self._flush = flush
        self._largest = largest
        self._width = width
        self._waiting: list[tuple[In, asyncio.Future[Out]]] = []
        self._flushing: set[asyncio.Task[None]] = set()

    async def put(self, item: In) -> Out:
        """Do this one, together with whatever else is waiting."""
        answer: asyncio.Future[Out] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        if len(self._flushing) < self._width:
            self._flushing.add(asyncio.create_task(self._run()))
        return await answer

    @property
    def idle(self) -> bool:
        """Whether nothing is waiting or under way."""
        return not self._waiting and not self._flushing

    async def drain(self) -> None:
        """Wait until nothing is under way."""
        while self._flushing:
            await asyncio.gather(*self._flushing, return_exceptions=True)

    async def _run(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[: self._largest], self._waiting[self._largest :]
            await self._answer(batch)
        # Left here and not in a callback: a caller answered just now may put again before a callback runs.
        if task := asyncio.current_task():
            self._flushing.discard(task)

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
