"""Worker: claims, runs and settles jobs, and stops in a defined order."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from holdfast import tasks
from holdfast.model.ids import WorkerId
from holdfast.model.outcome import Interrupted
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.ports import JobSource, StepStore
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.running.job_process import JobProcesses
from holdfast.worker.running.monitors import MAX_HELD_JOBS, EventLoopMonitor, cancel_lost_jobs, release_unknown_jobs
from holdfast.worker.running.queue_runner import QueueRunner
from holdfast.worker.running.runner import Runner
from holdfast.worker.running.settler import Settler

FLUSH_TIMEOUT_S = 10.0
"""Time limit for reporting the last outcomes."""


class Worker:
    """Runs one application's handlers in this process under a lease that the supervisor renews."""

    def __init__(
        self,
        source: JobSource,
        step_store: StepStore,
        registry: Registry,
        *,
        worker: WorkerId,
        queues: Mapping[str, int],
        shared_state: SharedState,
        processes: JobProcesses,
        max_prefetch: int,
        poll: float,
        fail_rate: float,
        on_slot_lost: Callable[[str], None],
        warn: Callable[[str, float], None],
    ) -> None:
        self._source = source
        self._worker = worker
        self._settler = Settler(source, shared_state)
        self._processes = processes
        self._threads = ThreadPoolExecutor(max_workers=sum(queues.values()), thread_name_prefix="holdfast handler")
        self._monitor = EventLoopMonitor(registry, shared_state, warn)
        runner = Runner(registry, step_store, threads=self._threads, processes=processes, fail_rate=fail_rate)
        self._queue_runners = [
            QueueRunner(
                queue,
                size,
                claims=source.claims(worker, [queue], registry.types()),
                held_jobs=lambda: source.held_by(worker, MAX_HELD_JOBS),
                subscription=source.listen([queue]),
                runner=runner,
                settler=self._settler,
                shared_state=shared_state,
                max_prefetch=max_prefetch,
                poll=poll * max(1.0, len(queues) / 3),  # many queues poll less often, to bound the load
                on_slot_lost=on_slot_lost,
            )
            for queue, size in queues.items()
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()

    @property
    def running(self) -> int:
        """Number of running handlers."""
        return sum(queue_runner.running for queue_runner in self._queue_runners)

    @property
    def finished(self) -> int:
        """Number of attempts that ended by themselves; released jobs do not count."""
        return self._settler.finished

    @property
    def waiting(self) -> int:
        """Number of jobs that are claimed and not started."""
        return sum(queue_runner.waiting for queue_runner in self._queue_runners)

    async def run(self) -> None:
        """Work until stopped; raise the first error of an internal task."""
        self._tasks = [
            tasks.start(self._settler.run(), name="holdfast settler", awaited=True),
            tasks.start(cancel_lost_jobs(self._source, self._queue_runners), name="holdfast lost jobs", awaited=True),
            tasks.start(
                release_unknown_jobs(self._source, self._worker, self._queue_runners),
                name="holdfast unknown jobs",
                awaited=True,
            ),
            tasks.start(self._monitor.run(), name="holdfast event loop monitor", awaited=True),
        ]
        self._tasks += [
            tasks.start(queue_runner.run(), name=f"holdfast queue {queue_runner.queue}", awaited=True)
            for queue_runner in self._queue_runners
        ]
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if not task.cancelled():
                task.result()
        await self._ended.wait()

    async def drain(self, grace: float) -> None:
        """Stop within about `grace` seconds: no job is lost, and unfinished jobs spend no attempt."""
        until = time.monotonic() + grace
        for queue_runner in self._queue_runners:  # 1. stop claiming, 2. release jobs that were not started
            for job in queue_runner.stop_claiming():
                self._settler.put(job, Interrupted(started=False))
        with contextlib.suppress(TimeoutError):  # 3. let running handlers finish
            async with asyncio.timeout(max(0.0, until - time.monotonic())):
                await asyncio.gather(*[queue_runner.wait_until_drained() for queue_runner in self._queue_runners])
        for queue_runner in self._queue_runners:  # 4. stop the other handlers; their jobs spend no attempt
            for run in queue_runner.runs():
                queue_runner.stop(run, "drain")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.gather(*[queue_runner.wait_until_drained() for queue_runner in self._queue_runners])
        await self._settler.flush(FLUSH_TIMEOUT_S)  # 5. report all outcomes
        await self._end()

    async def abandon(self, timeout: float) -> None:
        """Stop all handlers within `timeout` seconds and report nothing, because the lease is lost."""
        self._settler.drop()
        for queue_runner in self._queue_runners:
            queue_runner.stop_claiming()
            for run in queue_runner.runs():
                queue_runner.stop(run, "lost")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await asyncio.gather(*[queue_runner.wait_until_drained() for queue_runner in self._queue_runners])
        await self._end()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:  # a handler that does not stop keeps its slot task alive
            await asyncio.wait(self._tasks, timeout=1.0)
        await self._processes.aclose()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._ended.set()
