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
from holdfast.worker.ports import Source
from holdfast.worker.processes.forkserver import Nursery
from holdfast.worker.processes.memory import resident
from holdfast.worker.processes.protocol import (
    Drain,
    Failed,
    FromChild,
    Go,
    Hello,
    Load,
    Lost,
    ToChild,
    Worn,
    line,
    read_to_child,
)
from holdfast.worker.processes.shared_state import Board
from holdfast.worker.running.job_process import JobProcesses
from holdfast.worker.running.worker import Worker
from holdfast.worker.step_store import Records

LOST_CODE = 75
"""Exit code of a child that ended because its lease was gone."""

UNCONNECTED_CODE = 69
"""Exit code of a child that could not reach the database."""

MARGIN = 1 / 6
"""The part of a lease that is not counted on."""


def answer_within(lease: float) -> float:
    """Seconds that handlers have to end when their lease is gone: fewer than the margin, so that they have by then."""
    return min(1.0, lease * MARGIN / 2)


class Application(NamedTuple):
    """What a child is told to run."""

    url: str
    registry: Registry
    queues: dict[str, int]


class Options(NamedTuple):
    """How it is to run it."""

    most_ahead: int
    poll: float
    fail_rate: float
    process_command: list[str]


class Both(Source, Records, Protocol):
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
        board: Board,
        connect: Callable[[], Awaitable[Both]],
        warn: Callable[[str, float], None],
        nursery: Nursery | None = None,
    ) -> None:
        self._application = application
        self._options = options
        self._board = board
        self._connect = connect
        self._warn = warn
        self._nursery = nursery
        self._writer: asyncio.StreamWriter
        self._lease = 0.0
        self._worker: Worker | None = None
        self._stopping: asyncio.Task[int] | None = None

    async def live(self, channel: socket.socket) -> int:
        """Until the supervisor ends it, or is gone; the exit code."""
        reader, self._writer = await asyncio.open_connection(sock=channel)
        app = self._application
        self._tell(Hello(app.url, app.queues, app.registry.types(), app.registry.described()))
        go = await _read(reader)
        if not isinstance(go, Go):
            return 0
        self._lease = go.lease
        try:
            engine = await self._connect()
        except HoldfastError as error:  # the database went away just now: the supervisor starts another
            self._tell(Failed(str(error)))
            return UNCONNECTED_CODE
        try:
            return await self._work(engine, WorkerId(go.worker), reader)
        finally:
            with contextlib.suppress(TimeoutError):  # a handler that would not stop may have a connection
                async with asyncio.timeout(1.0):
                    await engine.aclose()

    async def _work(self, engine: Both, worker: WorkerId, reader: asyncio.StreamReader) -> int:
        self._worker = Worker(
            engine,
            engine,
            self._application.registry,
            worker=worker,
            queues=self._application.queues,
            board=self._board,
            processes=JobProcesses(self._options.process_command, self._board, self._nursery),
            most_ahead=self._options.most_ahead,
            poll=self._options.poll,
            fail_rate=self._options.fail_rate,
            worn=lambda reason: self._tell(Worn(reason)),
            warn=self._warn,
        )
        working = asyncio.create_task(self._worker.run())
        listening = asyncio.create_task(self._listen(reader, self._worker))
        timing = asyncio.create_task(self._mind_the_lease())
        done, _ = await asyncio.wait([working, listening, timing], return_when=asyncio.FIRST_COMPLETED)
        if listening in done or (working in done and not working.cancelled() and working.exception() is None):
            code = await listening
        elif timing in done:
            await self._worker.abandon(answer_within(self._lease))
            code = LOST_CODE
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
        telling = asyncio.create_task(self._tell_load(worker))
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
                        await worker.abandon(answer_within(self._lease))
                        return LOST_CODE
                    case Go():
                        pass
                hearing = asyncio.create_task(_read(reader))
        finally:
            telling.cancel()
            hearing.cancel()
            if draining:
                draining.cancel()

    async def _tell_load(self, worker: Worker) -> None:
        told = None
        seen = resident(os.getpid()) is not None  # the supervisor sees for itself
        while True:
            await asyncio.sleep(0.5)
            if (load := Load(worker.running, worker.waiting, None if seen else resident())) != told:
                self._tell(load)
                told = load

    async def _mind_the_lease(self) -> None:
        """Until the lease can no longer be trusted, whether or not anybody says so."""
        while (left := self._board.deadline - time.monotonic()) > 0:  # noqa: ASYNC110 - a renewal moves the deadline
            await asyncio.sleep(left)

    def _tell(self, message: FromChild) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(line(message))


async def _read(reader: asyncio.StreamReader) -> ToChild | None:
    """The next message; None when the supervisor is gone."""
    with contextlib.suppress(OSError):
        if text := await reader.readline():
            return read_to_child(text)
    return None
