"""Worker process: runs the jobs of an application, controlled by its supervisor."""

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from holdfast import tasks
from holdfast.errors import HoldfastError
from holdfast.model.ids import WorkerId
from holdfast.policy.recycling import RecyclingRules
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.ports import WorkerBackend
from holdfast.worker.processes.forkserver import ForkServer
from holdfast.worker.processes.memory import resident
from holdfast.worker.processes.protocol import (
    EXIT_LEASE_LOST,
    EXIT_NO_DATABASE,
    Drain,
    FromWorker,
    Hello,
    Load,
    Lost,
    SlotLost,
    Start,
    StartFailed,
    ToWorker,
    encode_line,
    read_to_worker,
    stop_timeout,
)
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.processes.sign_of_life import SignOfLife
from holdfast.worker.running.job_process import JobProcesses
from holdfast.worker.running.worker import Worker

_LOAD_INTERVAL_S = 0.5
_CLOSE_TIMEOUT_S = 1.0


class WorkerOptions(NamedTuple):
    """Options of a worker process."""

    queues: Mapping[str, int]
    """Number of slots of each queue."""
    max_prefetch: int
    """Largest number of claimed jobs that wait for a slot, per queue."""
    poll: float
    """Seconds between claims when no wake-up arrives."""
    fail_rate: float
    """Share of attempts that fail on purpose."""
    job_command: list[str]
    """Arguments of Python that start a job process if it cannot be forked."""
    recycling: RecyclingRules = RecyclingRules()
    """Bounds after which a job process is replaced; the supervisor replaces the worker."""


class WorkerProcess:
    """Worker process, from its first message to its exit code."""

    def __init__(
        self,
        url: str,
        registry: Registry,
        options: WorkerOptions,
        *,
        shared_state: SharedState,
        connect: Callable[[], Awaitable[WorkerBackend]],
        warn: Callable[[str, float], None],
        forkserver: ForkServer | None = None,
    ) -> None:
        self._url = url
        self._registry = registry
        self._options = options
        self._shared_state = shared_state
        self._connect = connect
        self._warn = warn
        self._forkserver = forkserver
        self._writer: asyncio.StreamWriter
        self._lease = 0.0

    async def run(self, channel: socket.socket) -> int:
        """Run jobs until the supervisor ends this process or is gone; return the exit code."""
        reader, self._writer = await asyncio.open_connection(sock=channel)
        self._send(
            Hello(self._url, dict(self._options.queues), self._registry.types(), self._registry.described()),
        )
        start = await _read(reader)
        if not isinstance(start, Start):
            return 0
        self._lease = start.lease
        sign_of_life = SignOfLife(self._shared_state)
        sign_of_life.start()
        try:
            return await self._connect_and_work(WorkerId(start.worker), reader)
        finally:
            sign_of_life.stop()

    async def _connect_and_work(self, worker: WorkerId, reader: asyncio.StreamReader) -> int:
        try:
            backend = await self._connect()
        except HoldfastError as error:  # the database became unavailable just now: the supervisor starts another worker
            self._send(StartFailed(str(error)))
            return EXIT_NO_DATABASE
        try:
            return await self._work(backend, worker, reader)
        finally:
            with contextlib.suppress(TimeoutError):  # a handler that did not stop may hold a connection
                async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                    await backend.aclose()

    async def _work(self, backend: WorkerBackend, worker_id: WorkerId, reader: asyncio.StreamReader) -> int:
        worker = Worker(
            backend.attempts,
            backend.attempts,
            self._registry,
            worker=worker_id,
            queues=self._options.queues,
            shared_state=self._shared_state,
            processes=JobProcesses(
                self._options.job_command, self._shared_state, self._forkserver, self._options.recycling
            ),
            max_prefetch=self._options.max_prefetch,
            poll=self._options.poll,
            fail_rate=self._options.fail_rate,
            on_slot_lost=lambda reason: self._send(SlotLost(reason)),
            warn=self._warn,
        )
        working = tasks.start(worker.run(), name="holdfast worker", awaited=True)
        handling = tasks.start(self._handle_messages(reader, worker), name="holdfast supervisor messages", awaited=True)
        expiry = tasks.start(self._wait_for_lease_expiry(), name="holdfast lease expiry", awaited=True)
        try:
            done, _ = await asyncio.wait([working, handling, expiry], return_when=asyncio.FIRST_COMPLETED)
            if handling in done or (working in done and not working.cancelled() and working.exception() is None):
                return await handling
            if expiry in done:
                await worker.abandon(stop_timeout(self._lease))
                return EXIT_LEASE_LOST
            working.result()  # raises the worker's error
            return 1
        finally:
            await tasks.stop(working, handling, expiry)

    async def _handle_messages(self, reader: asyncio.StreamReader, worker: Worker) -> int:
        """Act on the supervisor's messages until the worker has ended; return the exit code."""
        draining: asyncio.Task[None] | None = None
        reading = tasks.start(_read(reader), name="holdfast supervisor message", awaited=True)
        reporting = tasks.start(self._report_load(worker), name="holdfast load reports")
        try:
            while True:
                await asyncio.wait([reading, *([draining] if draining else [])], return_when=asyncio.FIRST_COMPLETED)
                if draining and draining.done():
                    draining.result()
                    return 0
                match reading.result():
                    case Drain(seconds):  # a second one replaces the first and usually allows less time
                        await tasks.stop(draining)
                        draining = tasks.start(worker.drain(seconds), name="holdfast drain", awaited=True)
                    case Lost() | None:
                        await worker.abandon(stop_timeout(self._lease))
                        return EXIT_LEASE_LOST
                    case Start():
                        pass
                reading = tasks.start(_read(reader), name="holdfast supervisor message", awaited=True)
        finally:
            await tasks.stop(reporting, reading, draining)

    async def _report_load(self, worker: Worker) -> None:
        sent = None
        supervisor_sees_memory = resident(os.getpid()) is not None
        while True:
            await asyncio.sleep(_LOAD_INTERVAL_S)
            memory = None if supervisor_sees_memory else resident()
            if (load := Load(worker.running, worker.waiting, memory, worker.finished)) != sent:
                self._send(load)
                sent = load

    async def _wait_for_lease_expiry(self) -> None:
        """Return when the lease can no longer be trusted, even if the supervisor says nothing."""
        while (left := self._shared_state.deadline - time.monotonic()) > 0:  # noqa: ASYNC110 - a renewal changes the deadline
            await asyncio.sleep(left)

    def _send(self, message: FromWorker) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write(encode_line(message))


async def _read(reader: asyncio.StreamReader) -> ToWorker | None:
    """Return the next message, or None if the supervisor is gone."""
    with contextlib.suppress(OSError):
        if text := await reader.readline():
            return read_to_worker(text)
    return None
