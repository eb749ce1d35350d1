"""A worker's life: claim, run, settle; and stopping, written once, in order."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from holdfast.model.ids import WorkerId
from holdfast.model.outcome import Interrupted
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.ports import Source
from holdfast.worker.processes.shared_state import Board
from holdfast.worker.running.job_process import JobProcesses
from holdfast.worker.running.monitors import LoopWatch, stop_the_lost
from holdfast.worker.running.queue_runner import Slots
from holdfast.worker.running.runner import Runner
from holdfast.worker.running.settler import Settler
from holdfast.worker.step_store import Records

_MOST_HELD = 100_000

FLUSH_LIMIT = 10.0
"""Seconds to get the last outcomes reported."""


class Worker:
    """Runs the handlers of one application in this process, under a lease that somebody else renews."""

    def __init__(
        self,
        source: Source,
        records: Records,
        registry: Registry,
        *,
        worker: WorkerId,
        queues: Mapping[str, int],
        board: Board,
        processes: JobProcesses,
        most_ahead: int,
        poll: float,
        fail_rate: float,
        worn: Callable[[str], None],
        warn: Callable[[str, float], None],
    ) -> None:
        self._source = source
        self._settler = Settler(source, board)
        self._processes = processes
        self._threads = ThreadPoolExecutor(max_workers=sum(queues.values()), thread_name_prefix="holdfast handler")
        self._watch = LoopWatch(registry, warn)
        runner = Runner(registry, records, threads=self._threads, processes=processes, fail_rate=fail_rate)
        self._slots = [
            Slots(
                queue,
                size,
                claims=source.claims(worker, [queue], registry.types()),
                held_here=lambda: source.held_by(worker, _MOST_HELD),
                subscription=source.listen([queue]),
                runner=runner,
                settler=self._settler,
                board=board,
                most_ahead=most_ahead,
                poll=poll * max(1.0, len(queues) / 3),
                worn=worn,
            )
            for queue, size in queues.items()
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()

    @property
    def running(self) -> int:
        """How many handlers are at work."""
        return sum(slots.running for slots in self._slots)

    @property
    def waiting(self) -> int:
        """How many jobs are claimed and not begun."""
        return sum(slots.waiting for slots in self._slots)

    async def run(self) -> None:
        """Work until it was stopped and has ended; raises whatever goes wrong inside before."""
        lives = [self._settler.run(), stop_the_lost(self._source, self._slots), self._watch.run()]
        self._tasks = [asyncio.create_task(life) for life in (*lives, *(slots.run() for slots in self._slots))]
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.result()
        await self._ended.wait()

    async def drain(self, grace: float) -> None:
        """Stop in good order: nothing is lost, and no attempt is spent on what did not end."""
        until = time.monotonic() + grace
        for slots in self._slots:  # 1 claim nothing more, 2 give back what was not begun
            for job in slots.stop_claiming():
                self._settler.put(job, Interrupted())
        with contextlib.suppress(TimeoutError):  # 3 let running handlers finish
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await asyncio.gather(*[slots.drained() for slots in self._slots])
        for slots in self._slots:  # 4 tell the rest to end; they go back, no attempt spent
            for run in slots.runs():
                slots.stop(run, "drain")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(*[slots.drained() for slots in self._slots])
        await self._settler.flush(FLUSH_LIMIT)  # 5 report all of it
        await self._end()

    async def abandon(self, within: float) -> None:
        """The lease is gone: stop all handlers at once, report nothing."""
        self._settler.drop()
        for slots in self._slots:
            slots.stop_claiming()
            for run in slots.runs():
                slots.stop(run, "lost")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await asyncio.gather(*[slots.drained() for slots in self._slots])
        await self._end()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:  # a handler that would not stop keeps its slot from ending
            await asyncio.wait(self._tasks, timeout=1.0)
        await self._processes.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._ended.set()
