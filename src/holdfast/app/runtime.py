"""Engines of an application: one per event loop, and one for synchronous callers.

An engine belongs to one event loop and one process. It is opened on first use.
"""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypeVar

from holdfast import tasks
from holdfast.loop_thread import LoopThread
from holdfast.model import decoded_job
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId
from holdfast.model.job import Job, JobSpec

T = TypeVar("T")


class SubmitReceipt(Protocol):
    """Receipt of a submission; the job is durable."""

    @property
    def id(self) -> JobId:
        """Id of the job."""

    @property
    def replayed(self) -> bool:
        """True if an earlier submission created the job."""


class JobOperations(Protocol):
    """Operations on jobs that an application needs."""

    async def submit(self, spec: JobSpec) -> SubmitReceipt:
        """Submit one job."""

    async def submit_many(self, specs: Sequence[JobSpec]) -> Sequence[SubmitReceipt]:
        """Submit many jobs atomically."""

    async def get(self, job_id: JobId) -> Job:
        """Return one job as it is stored."""

    async def get_decoded(self, job_id: JobId) -> decoded_job.Job:
        """Return one job for the application."""

    async def cancel(self, ids: Collection[JobId], *, reason: str) -> set[JobId]:
        """Cancel unfinished jobs; return the ids of those that were cancelled."""

    async def retry(self, ids: Collection[JobId]) -> set[JobId]:
        """Make dead, cancelled or waiting jobs ready now; return the ids of those that changed."""

    async def explain(self, job_id: JobId) -> Explanation:
        """Explain why a job is (not) running."""


class AppBackend(Protocol):
    """Interface of an engine on a database, and of a client of a remote node."""

    @property
    def jobs(self) -> JobOperations:
        """Operations on jobs."""

    async def aclose(self) -> None:
        """Close all connections."""


Open = Callable[[], Awaitable[AppBackend]]
Work = Callable[[AppBackend], Awaitable[T]]


class EngineProvider:
    """Provider of engines, which are opened on first use.

    Engines are closed by `close`, `aclose`, loop shutdown and program exit. After closing, the next use opens a new
    engine. After a fork, the child opens its own engines.
    """

    def __init__(self, opener: Open) -> None:
        self._opener = opener
        # A forked child keeps the parent's engines referenced but untouched: closing them could disturb the parent.
        self._by_process: dict[int, _Process] = {}

    async def here(self) -> AppBackend:
        """Return the engine of the running event loop."""
        return await self._process().here()

    def run(self, work: Work[T]) -> T:
        """Run `work` on the background thread and block until it returns. Thread-safe."""
        return self._process().run(work)

    def close(self) -> None:
        """Close the engine on the background thread."""
        self._process().stop_thread()

    async def aclose(self) -> None:
        """Close the engine of the running event loop and the one on the background thread."""
        process = self._process()
        await process.aclose()
        await asyncio.to_thread(process.stop_thread)

    def _process(self) -> "_Process":
        pid = os.getpid()
        # setdefault is atomic: the second thread gets the object of the first.
        return self._by_process.get(pid) or self._by_process.setdefault(pid, _Process(self._opener))


class _Process:
    """The engines of one process."""

    def __init__(self, opener: Open) -> None:
        self._opener = opener
        self._lifetimes: dict[asyncio.AbstractEventLoop, _EngineLifetime] = {}
        self._lock = threading.Lock()
        self._thread: LoopThread | None = None

    async def here(self) -> AppBackend:
        loop = asyncio.get_running_loop()
        lifetime = self._lifetimes.get(loop)
        if lifetime is None:
            for other in [other for other in list(self._lifetimes) if other.is_closed()]:
                self._lifetimes.pop(other, None)
            lifetime = _EngineLifetime(self._opener, lambda: self._lifetimes.pop(loop, None))
            self._lifetimes[loop] = lifetime
        # Shielded: a cancelled caller must not cancel the opening that other callers await.
        return await asyncio.shield(lifetime.engine)

    async def aclose(self) -> None:
        lifetime = self._lifetimes.pop(asyncio.get_running_loop(), None)
        if lifetime is not None:
            await lifetime.aclose()

    def run(self, work: Work[T]) -> T:
        with self._lock:
            if self._thread is None:
                self._thread = LoopThread(self.aclose)
            thread = self._thread
        return thread.run(self._run(work))

    def stop_thread(self) -> None:
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()

    async def _run(self, work: Work[T]) -> T:
        return await work(await self.here())


class _EngineLifetime:
    """Lifetime of one engine, from opening to `aclose` or the shutdown of its loop.

    Loop shutdown closes async generators, so the engine is held inside one.
    """

    def __init__(self, opener: Open, ended: Callable[[], object]) -> None:
        self._opener = opener
        self._ended = ended
        self._generator = self._run()
        self.engine = tasks.start(self._begin(), name="holdfast engine opening", awaited=True)
        self.engine.add_done_callback(self._forget_if_failed)

    async def aclose(self) -> None:
        await asyncio.wait([self.engine])
        await self._generator.aclose()

    async def _begin(self) -> AppBackend:
        return await anext(self._generator)

    async def _run(self) -> AsyncGenerator[AppBackend]:
        engine = await self._opener()
        try:
            yield engine
        finally:
            self._ended()
            await engine.aclose()

    def _forget_if_failed(self, opening: asyncio.Task[AppBackend]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            self._ended()  # the next caller tries again
