"""A worker process, under a supervisor: it has the application and runs its handlers."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from holdfast.errors import HoldfastError
from holdfast.model.ids import WorkerId
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.ports import JobSource, StepStore
from holdfast.worker.processes.forkserver import ForkServer
from holdfast.worker.processes.memory import resident
from holdfast.worker.processes.protocol import (
    Drain,
    FromChild,
    Hello,
    Load,
    Lost,
    SlotLost,
    Start,
    StartFailed,
    ToChild,
    line,
    read_to_child,
)
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.running.job_process import JobProcesses
from holdfast.worker.running.worker import Worker

EXIT_LEASE_LOST = 75
"""Exit code of a child that ended because its lease was gone."""

EXIT_NO_DATABASE = 69
"""Exit code of a child that could not reach the database."""

LEASE_MARGIN = 1 / 6
"""The part of a lease that is not counted on."""


def stop_timeout(lease: float) -> float:
    """Seconds that handlers have to end when their lease is gone: fewer than the margin, so that they have by then."""
    return min(1.0, lease * LEASE_MARGIN / 2)


class Application(NamedTuple):
    """What a child is told to run."""

    url: str
    registry: Registry
    queues: dict[str, int]


class Options(NamedTuple):
    """How it is to run it."""

    max_prefetch: int
    poll: float
    fail_rate: float
    process_command: list[str]


class WorkerEngine(JobSource, StepStore, Protocol):
    """An engine."""

    async def aclose(self) -> None:
        """Close all connections."""


class Child:
    """The life of a worker process, led by what its supervisor says."""

    def __init__(
        self,
        application: Application,
        options: Options,
        *,
        shared_state: SharedState,
        connect: Callable[[], Awaitable[WorkerEngine]],
        warn: Callable[[str, float], None],
        forkserver: ForkServer | None = None,
    ) -> None:
        self._application = application
        self._options = options
        self._shared_state = shared_state
        self._connect = connect
        self._warn = warn
        self._forkserver = forkserver
        self._writer: asyncio.StreamWriter
        self._lease = 0.0
        self._worker: Worker | None = None
        self._stopping: asyncio.Task[int] | None = None

    async def run(self, channel: socket.socket) -> int:
        """Until the supervisor ends it, or is gone; the exit code."""
        reader, self._writer = await asyncio.open_connection(sock=channel)
        app = self._application
        self._send(Hello(app.url, app.queues, app.registry.types(), app.registry.described()))
        go = await _read(reader)
        if not isinstance(go, Start):
            return 0
        self._lease = go.lease
        try:
            engine = await self._connect()
        except HoldfastError as error:  # the database went away just now: the supervisor starts another
            self._send(StartFailed(str(error)))
            return EXIT_NO_DATABASE
        try:
            return await self._work(engine, WorkerId(go.worker), reader)
        finally:
            with contextlib.suppress(TimeoutError):  # a handler that would not stop may have a connection
                async with asyncio.timeout(1.0):
                    await engine.aclose()

    async def _work(self, engine: WorkerEngine, worker: WorkerId, reader: asyncio.StreamReader) -> int:
        self._worker = Worker(
            engine,
            engine,
            self._application.registry,
            worker=worker,
            queues=self._application.queues,
            shared_state=self._shared_state,
            processes=JobProcesses(self._options.process_command, self._shared_state, self._forkserver),
            max_prefetch=self._options.max_prefetch,
            poll=self._options.poll,
            fail_rate=self._options.fail_rate,
            on_slot_lost=lambda reason: self._send(SlotLost(reason)),
            warn=self._warn,
        )
        working = asyncio.create_task(self._worker.run())
        listening = asyncio.create_task(self._listen(reader, self._worker))
        timing = asyncio.create_task(self._watch_lease())
        done, _ = await asyncio.wait([working, listening, timing], return_when=asyncio.FIRST_COMPLETED)
        if listening in done or (working in done and not working.cancelled() and working.exception() is None):
            code = await listening
        elif timing in done:
            await self._worker.abandon(stop_timeout(self._lease))
            code = EXIT_LEASE_LOST
        else:
            working.result()  # raises what went wrong
            code = 1
        for task in (working, listening, timing):
            task.cancel()
        await asyncio.gather(working, listening, timing, return_exceptions=True)
        return code

    async def _listen(self, reader: asyncio.StreamReader, worker: Worker) -> int:
        """Do what the supervisor says until the work is over; the exit code."""
        draining: asyncio.Task[None] | None = None
        hearing = asyncio.create_task(_read(reader))
        telling = asyncio.create_task(self._report_load(worker))
        try:
            while True:
                await asyncio.wait([hearing, *([draining] if draining else [])], return_when=asyncio.FIRST_COMPLETED)
                if draining and draining.done():
                    draining.result()
                    return 0
                match hearing.result():
                    case Drain(seconds):
                        if draining:  # asked again: hasten
                            draining.cancel()
                            await asyncio.gather(draining, return_exceptions=True)
                        draining = asyncio.create_task(worker.drain(seconds))
                    case Lost() | None:
                        await worker.abandon(stop_timeout(self._lease))
                        return EXIT_LEASE_LOST
                    case Start():
                        pass
                hearing = asyncio.create_task(_read(reader))
        finally:
            telling.cancel()
            hearing.cancel()
            if draining:
                draining.cancel()

    async def _report_load(self, worker: Worker) -> None:
        told = None
        seen = resident(os.getpid()) is not None  # the supervisor sees for itself
        while True:
            await asyncio.sleep(0.5)
            if (load := Load(worker.running, worker.waiting, None if seen else resident())) != told:
                self._send(load)
                told = load

    async def _watch_lease(self) -> None:
        """Until the lease can no longer be trusted, whether or not anybody says so."""
        while (left := self._shared_state.deadline - time.monotonic()) > 0:  # noqa: ASYNC110 - a renewal moves the deadline
            await asyncio.sleep(left)

    def _send(self, message: FromChild) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(line(message))


async def _read(reader: asyncio.StreamReader) -> ToChild | None:
    """The next message; None when the supervisor is gone."""
    with contextlib.suppress(OSError):
        if text := await reader.readline():
            return read_to_child(text)
    return None
