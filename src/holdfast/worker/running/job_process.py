"""Runs jobs in processes of their own: a crash, a leak or an endless loop harms nobody else, and can be ended."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.model.job import Job
from holdfast.model.outcome import Crashed, Outcome
from holdfast.worker.context.attempt_logs import AttemptLogs
from holdfast.worker.processes.forkserver import ForkServer, Process
from holdfast.worker.processes.process_control import describe_exit, die_with_parent
from holdfast.worker.processes.protocol import (
    FromJob,
    HandlerFinished,
    HandlerLogged,
    HandlerStarted,
    RunJob,
    StartFailed,
    line,
    read_from_job,
)
from holdfast.worker.processes.shared_state import SharedState

TERMINATE_TIMEOUT_S = 2.0
"""Seconds between the request to end and the end."""

START_TIMEOUT_S = 120.0
"""Seconds that the application may take to load. They count for no job's timeout."""

_FLUSH_TIMEOUT_S = 0.2
MAX_LINE_BYTES = 8 * 1024 * 1024


class JobProcesses:
    """Keeps processes that have the application loaded; each runs one job at a time."""

    def __init__(self, command: Sequence[str], shared_state: SharedState, forkserver: ForkServer | None = None) -> None:
        self._command = command
        self._shared_state = shared_state
        self._forkserver = forkserver
        self._idle: list[JobProcess] = []

    async def run(
        self, job: Job, *, on_start: Callable[[], None], attempt_logs: AttemptLogs, entry: int | None
    ) -> Outcome:
        """See `holdfast.worker.running.runner.Processes`."""
        while True:
            kept = self._idle.pop() if self._idle else None
            process = kept or await JobProcess.start(self._command, self._shared_state, self._forkserver)
            try:
                outcome = await process.run(RunJob(job, entry), on_start, attempt_logs)
            except BaseException:
                await process.end()
                raise
            if process.alive:
                self._idle.append(process)
            else:
                await process.end()
            if outcome is not None:
                return outcome
            if kept is None:  # one that died while it was kept is no fault of this job: take another
                return Crashed(process.why_not_begun)

    async def aclose(self) -> None:
        """End all that have nothing to do."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*[process.end() for process in idle])


class JobProcess:
    """One such process, the leader of a group: what its jobs start ends with it."""

    def __init__(
        self,
        process: Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        shared_state: SharedState,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._shared_state = shared_state
        self._entry: int | None = shared_state.started(process.pid)
        self._reason = ""

    @classmethod
    async def start(
        cls, command: Sequence[str], shared_state: SharedState, forkserver: ForkServer | None
    ) -> "JobProcess":
        """Start one and connect to it: forked where the application is loaded already, if it can be."""
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno(), shared_state.descriptor]
        try:
            process: Process | None = await forkserver.start(descriptors) if forkserver else None
            if process is None:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, *command, *(str(each) for each in descriptors),
                    pass_fds=descriptors, start_new_session=True, preexec_fn=die_with_parent,
                )  # fmt: skip
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_LINE_BYTES)
        return cls(process, reader, writer, shared_state)

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._process.returncode is None and not self._reader.at_eof()

    @property
    def why_not_begun(self) -> str:
        """Describe how the process ended before the handler began."""
        reason = f": {self._reason}" if self._reason else ""
        return f"{describe_exit(self._process.returncode)}, before the handler began{reason}"

    async def run(self, given: RunJob, on_start: Callable[[], None], attempt_logs: AttemptLogs) -> Outcome | None:
        """Run one job there. A process that ends before it answered has crashed with it; None if it had not begun."""
        with contextlib.suppress(OSError):
            self._writer.write(line(given))
            await self._writer.drain()
        has_begun = False
        ending = asyncio.ensure_future(self._process.wait())
        try:
            async with asyncio.timeout(START_TIMEOUT_S) as loading:
                while (message := await self._receive(ending)) is not None:
                    match message:
                        case HandlerStarted():
                            loading.reschedule(None)
                            has_begun = True
                            on_start()
                        case HandlerLogged(logged):
                            attempt_logs.add(logged)
                        case HandlerFinished(outcome):
                            return outcome
                        case StartFailed(reason):
                            self._reason = reason
        except TimeoutError:
            self._reason = f"it was not loaded after {START_TIMEOUT_S:g} s"
        finally:
            ending.cancel()
        await self.end()
        return Crashed(describe_exit(self._process.returncode)) if has_begun else None

    async def _receive(self, ending: "asyncio.Future[int]") -> FromJob | None:
        """What it says; nothing when it has ended, even if something it started keeps the line open."""
        reading = asyncio.ensure_future(self._reader.readline())
        try:
            either: list[asyncio.Future[Any]] = [reading, ending]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():  # what it said before it ended is on its way
                await asyncio.wait([reading], timeout=_FLUSH_TIMEOUT_S)
            with contextlib.suppress(OSError, ValueError):
                if reading.done() and (text := reading.result()):
                    return read_from_job(text)
            return None
        finally:
            reading.cancel()

    async def end(self) -> None:
        """End it and all it started: asked first, then made to."""
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(asyncio.shield(self._process.wait()), TERMINATE_TIMEOUT_S)
            except (TimeoutError, asyncio.CancelledError):
                self._signal(signal.SIGKILL)
                await self._process.wait()
        self._signal(signal.SIGKILL)
        self._writer.close()
        if self._entry is not None:
            self._shared_state.ended(self._entry)
            self._entry = None

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
