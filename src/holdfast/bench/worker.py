"""A worker with nothing in it: claims, decodes the payload, settles. What a real worker adds is measured against it."""

import asyncio
import os
import socket
from collections.abc import Callable

import msgspec

from holdfast import __version__
from holdfast.engine.engine import Engine
from holdfast.model.ids import new_worker_id
from holdfast.model.job import Job
from holdfast.model.outcome import Report, Succeeded
from holdfast.model.time import seconds
from holdfast.model.worker import WorkerInfo

LEASE = seconds(60)
BATCH = 500
_AHEAD = 3 * BATCH
_POLL = 1.0
_DONE = Succeeded(b"null")


class NoopWorker:
    """Two tasks claim, two settle; jobs that end while a settle is in flight are settled together with the next."""

    def __init__(
        self, engine: Engine, queue: str, goal: int | None, started: Callable[[Job], None] | None = None
    ) -> None:
        self.done = 0
        self.reported = 0
        self.progressed = asyncio.Event()
        """Set whenever jobs were settled; whoever waits for it clears it."""
        self._engine = engine
        self._queue = queue
        self._goal = goal
        self._started = started
        self._claimed = 0
        self._outbox: list[Report] = []
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._finished = asyncio.Event()

    def finish_at(self, goal: int) -> None:
        """End when so many jobs are settled in all."""
        self._goal = goal
        self._note_end()

    async def run(self) -> None:
        """Until `goal` jobs are settled; never claims more than that."""
        host, pid = socket.gethostname(), os.getpid()
        worker = WorkerInfo(new_worker_id(), "bench", host, pid, __version__, self._queue, BATCH)
        await self._engine.workers.register(worker, LEASE)
        self._claims = self._engine.attempts.claims(worker.id, [self._queue])
        self._subscription = self._engine.attempts.listen([self._queue])
        parts = (self._claim(), self._claim(), self._settle(), self._settle(), self._renew(worker), self._end())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._subscription.close()
        for task in ended:
            task.result()
        await self._engine.workers.depart(worker.id)

    async def _end(self) -> None:
        await self._finished.wait()

    async def _renew(self, worker: WorkerInfo) -> None:
        while await self._engine.workers.renew(worker.id, LEASE):  # noqa: ASYNC110 - a beat: there is nothing to wait for
            await asyncio.sleep(10)
        raise RuntimeError("the bench lost its lease: the machine is overloaded")

    async def _claim(self) -> None:
        while True:
            while not (slots := self._slots()):
                self._room.clear()
                await self._room.wait()
            self._claimed += slots  # before the answer is there, so that the other task does not count on them too
            try:
                # Taken in while it is fresh: old news would have the claim search among what is long claimed.
                self._claims.on_ready(await self._subscription.wait(0))
                jobs = await self._claims.claim(slots)
            finally:
                self._claimed -= slots
            self._claimed += len(jobs)
            if not jobs:
                self._claims.on_ready(await self._subscription.wait(min(_POLL, self._claims.recheck_delay())))
                continue
            self._subscription.reset()
            for job in jobs:
                self._handle(job)
            self._news.set()
            await asyncio.sleep(0)

    def _slots(self) -> int:
        if self._claimed - self.done > _AHEAD:
            return 0
        return BATCH if self._goal is None else max(0, min(BATCH, self._goal - self._claimed))

    def _handle(self, job: Job) -> None:
        if self._started:
            self._started(job)
        msgspec.json.decode(job.payload)
        self._outbox.append(Report(job, _DONE))

    async def _settle(self) -> None:
        while True:
            if not self._outbox:
                self._news.clear()
                await self._news.wait()
                continue
            batch, self._outbox = self._outbox[:BATCH], self._outbox[BATCH:]
            settled = await self._engine.attempts.settle_many(batch)
            if len(settled) != len(batch):
                raise RuntimeError("a settle was refused: somebody else works on the bench's jobs")
            self.done += len(batch)
            self._room.set()
            self.progressed.set()
            self._note_end()

    def _note_end(self) -> None:
        if self._goal is not None and self.done >= self._goal:
            self._finished.set()
