"""Engines for whoever calls: one for each event loop that asks, and one behind a thread for callers without a loop.

An engine belongs to one event loop and one process. Here they are opened when first needed, and closed.
"""

import asyncio
import atexit
import concurrent.futures.thread  # before our own registration: what is registered later is called earlier
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
    """The answer to a submission: the job is durable."""

    @property
    def id(self) -> JobId:
        """Of the job."""

    @property
    def replayed(self) -> bool:
        """Whether an earlier submission made it."""


class Engine(Protocol):
    """What an application asks for: an engine on a database, or one behind a node."""

    async def submit(self, spec: JobSpec) -> SubmitReceipt:
        """Submit one job."""

    async def submit_many(self, specs: Sequence[JobSpec]) -> Sequence[SubmitReceipt]:
        """Submit many: all, or none."""

    async def get(self, job_id: JobId) -> Job:
        """One job."""

    async def cancel(self, ids: Collection[JobId], *, reason: str) -> set[JobId]:
        """Cancel what is not finished; which were."""

    async def retry(self, ids: Collection[JobId]) -> set[JobId]:
        """Run dead, cancelled or waiting jobs now; which were moved."""

    async def explain(self, job_id: JobId) -> Explanation:
        """Why a job is (not) running."""

    async def aclose(self) -> None:
        """Close all connections."""


Open = Callable[[], Awaitable[Engine]]
Work = Callable[[Engine], Awaitable[T]]

_CLOSE_TIMEOUT_S = 10.0
"""Seconds that closing waits for the thread: a database that hangs must not hang the program's end."""


class EngineProvider:
    """Opened when first asked for; closed by `close` and `aclose`, with their loop, or when the program ends.

    May be used again afterwards: they are opened anew. After a fork the child has engines of its own.
    """

    def __init__(self, opener: Open) -> None:
        self._opener = opener
        # What a parent opened stays its own: kept here untouched, because closing it in the child could do harm.
        self._by_process: dict[int, _Process] = {}

    async def here(self) -> Engine:
        """The engine of the running event loop."""
        return await self._process().here()

    def run(self, work: Work[T]) -> T:
        """Do this with the engine behind the thread, and wait for it. Works in any thread; blocks the calling one."""
        return self._process().thread().run(work)

    def close(self) -> None:
        """Close the engine behind the thread."""
        self._process().stop_thread()

    async def aclose(self) -> None:
        """Close the engine of the running event loop and the one behind the thread."""
        process = self._process()
        await process.aclose()
        await asyncio.to_thread(process.stop_thread)

    def _process(self) -> "_Process":
        pid = os.getpid()
        # One step for all threads: whoever comes second gets what the first one made.
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
        # One caller that gives up does not take the engine from the others that wait for it.
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
        if self._pid != os.getpid():  # a child that ends: the thread is its parent's
            return
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()


class _EngineLifetime:
    """An engine from its opening to its end: `aclose`, or the end of its loop.

    A loop that ends closes the async generators begun in it, so the engine is kept inside of one.
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
    """An event loop on a thread of its own, that others hand their work to."""

    def __init__(self, process: _Process) -> None:
        self._process = process
        self._started: concurrent.futures.Future[asyncio.AbstractEventLoop] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._serve, name="holdfast", daemon=True)
        self._thread.start()
        self._loop = self._started.result()

    def run(self, work: Work[T]) -> T:
        task = self._do(work)
        try:
            answer = asyncio.run_coroutine_threadsafe(task, self._loop)
        except RuntimeError:
            task.close()
            raise _closed() from None
        try:
            return answer.result()
        except concurrent.futures.CancelledError:
            raise _closed() from None
        except BaseException:  # Ctrl-C, say: nobody waits for it any more
            answer.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_CLOSE_TIMEOUT_S)

    async def _do(self, work: Work[T]) -> T:
        return await work(await self._process.here())

    def _serve(self) -> None:
        # Not by asyncio.Runner: it starts a thread to end the executor's, which is refused when the program ends.
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
    """Close it when the program ends, while its threads and executors still work: `atexit` comes too late for that."""
    reference = weakref.ref(process)

    def end() -> None:
        if (alive := reference()) is not None:
            alive.stop_thread()

    getattr(threading, "_register_atexit", atexit.register)(end)


def _closed() -> Unavailable:
    return Unavailable("the application was closed meanwhile: it may or may not have taken effect")
