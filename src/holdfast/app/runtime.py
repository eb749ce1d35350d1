"""Engines for an application: one per event loop, and one on a background thread for synchronous callers.

An engine belongs to one event loop and one process. It is opened on first use.
"""

import asyncio
import atexit
import concurrent.futures.thread  # import before registering: exit hooks run in reverse order
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from typing import Protocol, TypeVar

from holdfast.errors import Unavailable
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


class JobService(Protocol):
    """Operations on jobs that an application needs."""

    async def submit(self, spec: JobSpec) -> SubmitReceipt:
        """Submit one job."""

    async def submit_many(self, specs: Sequence[JobSpec]) -> Sequence[SubmitReceipt]:
        """Submit many jobs atomically."""

    async def get(self, job_id: JobId) -> Job:
        """Return one job."""

    async def cancel(self, ids: Collection[JobId], *, reason: str) -> set[JobId]:
        """Cancel unfinished jobs; return the ids of those that were cancelled."""

    async def retry(self, ids: Collection[JobId]) -> set[JobId]:
        """Make dead, cancelled or waiting jobs ready now; return the ids of those that changed."""

    async def explain(self, job_id: JobId) -> Explanation:
        """Explain why a job is (not) running."""


class Engine(Protocol):
    """Interface of an engine on a database, and of a client of a remote node."""

    @property
    def jobs(self) -> JobService:
        """Operations on jobs."""

    async def aclose(self) -> None:
        """Close all connections."""


Open = Callable[[], Awaitable[Engine]]
Work = Callable[[Engine], Awaitable[T]]

_CLOSE_TIMEOUT_S = 10.0
"""`close` waits this long for the thread, so that a hanging database cannot block program exit."""


class EngineProvider:
    """Provider of engines, opened on first use and closed by `close`, `aclose`, loop shutdown or program exit.

    After closing, the next use opens a new engine. After a fork, the child opens its own engines.
    """

    def __init__(self, opener: Open) -> None:
        self._opener = opener
        # A forked child keeps the parent's engines referenced but untouched: closing them could disturb the parent.
        self._by_process: dict[int, _Process] = {}

    async def here(self) -> Engine:
        """Return the engine of the running event loop."""
        return await self._process().here()

    def run(self, work: Work[T]) -> T:
        """Run `work` with the engine on the background thread and block until it returns. Thread-safe."""
        return self._process().thread().run(work)

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
        self._pid = os.getpid()
        self._lives: dict[asyncio.AbstractEventLoop, _EngineLifetime] = {}
        self._lock = threading.Lock()
        self._thread: _Thread | None = None
        self._awaits_end = False

    async def here(self) -> Engine:
        loop = asyncio.get_running_loop()
        life = self._lives.get(loop)
        if life is None:
            for other in [each for each in list(self._lives) if each.is_closed()]:
                self._lives.pop(other, None)
            life = self._lives[loop] = _EngineLifetime(self._opener, lambda: self._lives.pop(loop, None))
        # Shielded: a cancelled caller must not cancel the opening that other callers await.
        return await asyncio.shield(life.engine)

    async def aclose(self) -> None:
        life = self._lives.pop(asyncio.get_running_loop(), None)
        if life is not None:
            await life.aclose()

    def thread(self) -> "_Thread":
        with self._lock:
            if self._thread is None:
                self._thread = _Thread(self)
                if not self._awaits_end:
                    self._awaits_end = True
                    _at_end(self)
            return self._thread

    def stop_thread(self) -> None:
        if self._pid != os.getpid():  # in a forked child that exits: the thread exists only in the parent
            return
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()


class _EngineLifetime:
    """Lifetime of one engine, from opening to `aclose` or the shutdown of its loop.

    Loop shutdown closes async generators, so the engine is held inside one.
    """

    def __init__(self, opener: Open, ended: Callable[[], object]) -> None:
        self._opener = opener
        self._ended = ended
        self._generator = self._run()
        self.engine: asyncio.Task[Engine] = asyncio.get_running_loop().create_task(self._begin())
        self.engine.add_done_callback(self._forget_if_failed)

    async def aclose(self) -> None:
        await asyncio.wait([self.engine])
        await self._generator.aclose()

    async def _begin(self) -> Engine:
        return await anext(self._generator)

    async def _run(self) -> AsyncGenerator[Engine]:
        engine = await self._opener()
        try:
            yield engine
        finally:
            self._ended()
            await engine.aclose()

    def _forget_if_failed(self, opening: asyncio.Task[Engine]) -> None:
        if opening.cancelled() or opening.exception() is not None:
            self._ended()  # the next caller tries again


class _Thread:
    """Event loop on a background thread that runs the work of synchronous callers."""

    def __init__(self, process: _Process) -> None:
        self._process = process
        self._started: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._serve, name="holdfast", daemon=True)
        self._thread.start()
        self._loop = self._started.result()

    def run(self, work: Work[T]) -> T:
        task = self._do(work)
        try:
            future = asyncio.run_coroutine_threadsafe(task, self._loop)
        except RuntimeError:
            task.close()
            raise _closed() from None
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise _closed() from None
        except BaseException:  # for example KeyboardInterrupt: no caller waits for the result
            future.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_CLOSE_TIMEOUT_S)

    async def _do(self, work: Work[T]) -> T:
        return await work(await self._process.here())

    def _serve(self) -> None:
        # Not asyncio.Runner: it starts a thread to shut down the executor, which fails during program exit.
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(self._until_stopped())
        finally:
            loop.close()

    async def _until_stopped(self) -> None:
        self._stopped = asyncio.Event()
        self._started.set_result(asyncio.get_running_loop())
        await self._stopped.wait()
        try:
            await self._process.aclose()
        finally:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await asyncio.get_running_loop().shutdown_asyncgens()


def _at_end(process: _Process) -> None:
    """Close the engine at program exit while threads and executors still work; `atexit` runs too late."""
    reference = weakref.ref(process)

    def end() -> None:
        if (alive := reference()) is not None:
            alive.stop_thread()

    getattr(threading, "_register_atexit", atexit.register)(end)


def _closed() -> Unavailable:
    return Unavailable("the application was closed during the call: it may or may not have taken effect")
