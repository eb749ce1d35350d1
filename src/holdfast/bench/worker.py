"""Minimal worker that claims, decodes the payload and settles: a baseline for the real one."""

import asyncio
import os
import socket
from collections.abc import Callable

import msgspec

from holdfast import __version__, tasks
from holdfast.engine.engine import Engine
from holdfast.model.ids import new_worker_id
from holdfast.model.job import Job
from holdfast.model.outcome import Report, Succeeded
from holdfast.model.time import seconds
from holdfast.model.worker import WorkerInfo

LEASE = seconds(60)
BATCH_SIZE = 500
_MAX_AHEAD = 3 * BATCH_SIZE
_POLL_INTERVAL_S = 1.0
_DONE = Succeeded(b"null")


class NoopWorker:
    """Worker with two claiming and two settling tasks; a settle takes all jobs that finished."""

    def __init__(
        self, engine: Engine, queue: str, goal: int | None, started: Callable[[Job], None] | None = None
    ) -> None:
        self.done = 0
        self.reported = 0
        self.progressed = asyncio.Event()
        """Set when jobs were settled; the waiter clears it."""
        self._engine = engine
        self._queue = queue
        self._goal = goal
        self._started = started
        self._claimed = 0
        self._outbox: list[Report] = []
        self._unsettled = asyncio.Event()
        self._room = asyncio.Event()
        self._finished = asyncio.Event()

    def finish_at(self, goal: int) -> None:
        """Finish when this many jobs are settled in total."""
        self._goal = goal
        self._check_goal()

    async def run(self) -> None:
        """Run until `goal` jobs are settled; never claim more."""
        host, pid = socket.gethostname(), os.getpid()
        worker = WorkerInfo(new_worker_id(), "bench", host, pid, __version__, self._queue, BATCH_SIZE)
        await self._engine.workers.register(worker, LEASE)
        self._claims = self._engine.attempts.claims(worker.id, [self._queue])
        self._subscription = self._engine.attempts.listen([self._queue])
        parts = (self._claim(), self._claim(), self._settle(), self._settle(), self._renew(worker), self._end())
        running = [tasks.start(part, name="holdfast bench worker", awaited=True) for part in parts]
        try:
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await tasks.stop(*running)
            self._subscription.close()
        for task in done:
            task.result()
        await self._engine.workers.depart(worker.id)

    async def _end(self) -> None:
        await self._finished.wait()

    async def _renew(self, worker: WorkerInfo) -> None:
        while await self._engine.workers.renew(worker.id, LEASE):  # noqa: ASYNC110 - a heartbeat has no event to wait for
            await asyncio.sleep(10)
        raise RuntimeError("the benchmark worker lost its lease: the machine is overloaded")

    async def _claim(self) -> None:
        while True:
            while not (slots := self._slots()):
                self._room.clear()
                await self._room.wait()
            self._claimed += slots  # reserve before the claim, because the other task claims too
            try:
                # Apply notifications at once: old ones make the claim search lanes that are empty by now.
                self._claims.on_ready(await self._subscription.wait(0))
                jobs = await self._claims.claim(slots)
            finally:
                self._claimed -= slots
            self._claimed += len(jobs)
            if not jobs:
                self._claims.on_ready(
                    await self._subscription.wait(min(_POLL_INTERVAL_S, self._claims.recheck_delay()))
                )
                continue
            self._subscription.reset()
            for job in jobs:
                self._handle(job)
            self._unsettled.set()
            await asyncio.sleep(0)

    def _slots(self) -> int:
        if self._claimed - self.done > _MAX_AHEAD:
            return 0
        return BATCH_SIZE if self._goal is None else max(0, min(BATCH_SIZE, self._goal - self._claimed))

    def _handle(self, job: Job) -> None:
        if self._started:
            self._started(job)
        msgspec.json.decode(job.payload)
        self._outbox.append(Report(job, _DONE))

    async def _settle(self) -> None:
        while True:
            if not self._outbox:
                self._unsettled.clear()
                await self._unsettled.wait()
                continue
            batch, self._outbox = self._outbox[:BATCH_SIZE], self._outbox[BATCH_SIZE:]
            settled = await self._engine.attempts.settle_many(batch)
            if len(settled) != len(batch):
                raise RuntimeError("a settle was refused: another worker runs jobs of the benchmark")
            self.done += len(batch)
            self._room.set()
            self.progressed.set()
            self._check_goal()

    def _check_goal(self) -> None:
        if self._goal is not None and self.done >= self._goal:
            self._finished.set()
