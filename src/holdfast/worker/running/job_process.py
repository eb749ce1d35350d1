"""Job processes run jobs outside of the worker process, so that a crash harms only the job."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from holdfast import tasks
from holdfast.model.job import Job
from holdfast.model.outcome import Crashed, Outcome
from holdfast.policy.recycling import NEVER, RecyclingRules, recycling_reason
from holdfast.worker.context.attempt_logs import AttemptLogs
from holdfast.worker.processes.forkserver import ForkServer, Process
from holdfast.worker.processes.memory import resident
from holdfast.worker.processes.process_control import describe_exit, die_with_parent
from holdfast.worker.processes.protocol import (
    FromJob,
    HandlerFinished,
    HandlerLogged,
    HandlerStarted,
    RunJob,
    StartFailed,
    encode_line,
    read_from_job,
)
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.running.runner import Processes

TERMINATE_TIMEOUT_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""

START_TIMEOUT_S = 120.0
"""Time limit for loading the application; it does not count towards a job's timeout."""

_FLUSH_TIMEOUT_S = 0.2
MAX_LINE_BYTES = 8 * 1024 * 1024
"""Largest message between a worker and a job process."""


class JobProcesses(Processes):
    """Pool of job processes that have loaded the application; each runs one job at a time.

    Args:
        command: Arguments of Python that start a job process if it cannot be forked.
        shared_state: Memory in which the processes are recorded.
        forkserver: Fork server of this worker; None to execute every process.
        recycling: Bounds after which a process runs no further job.
    """

    def __init__(
        self,
        command: Sequence[str],
        shared_state: SharedState,
        forkserver: ForkServer | None = None,
        recycling: RecyclingRules = NEVER,
    ) -> None:
        self._command = command
        self._shared_state = shared_state
        self._forkserver = forkserver
        self._recycling = recycling
        self._idle: list[JobProcess] = []

    async def run(
        self, job: Job, *, on_start: Callable[[], None], attempt_logs: AttemptLogs, entry: int | None
    ) -> Outcome:
        while True:
            idle = self._idle.pop() if self._idle else None
            process = idle or await JobProcess.start(self._command, self._shared_state, self._forkserver)
            try:
                outcome = await process.run(RunJob(job, entry), on_start, attempt_logs)
            except BaseException:
                await process.end()
                raise
            if process.alive and not process.is_due(self._recycling):
                self._idle.append(process)
            else:
                await process.end()
            if outcome is not None:
                return outcome
            if idle is None:  # an idle process that died is not this job's fault: use another one
                return Crashed(process.start_failure)

    async def aclose(self) -> None:
        """End all idle processes."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*[process.end() for process in idle])


class JobProcess:
    """Job process. It leads a process group, so that programs of its jobs end with it."""

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
        self._entry: int | None = shared_state.add_group(process.pid)
        self._reason = ""
        self._jobs = 0

    @classmethod
    async def start(
        cls, command: Sequence[str], shared_state: SharedState, forkserver: ForkServer | None
    ) -> "JobProcess":
        """Start a process and connect to it: forked if possible, otherwise executed."""
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno(), shared_state.descriptor]
        try:
            process: Process | None = await forkserver.start(descriptors) if forkserver else None
            if process is None:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, *command, *(str(descriptor) for descriptor in descriptors),
                    pass_fds=descriptors, start_new_session=True, preexec_fn=die_with_parent,
                )  # fmt: skip
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_LINE_BYTES)
        return cls(process, reader, writer, shared_state)

    @property
    def alive(self) -> bool:
        """True if the process can run another job."""
        return self._process.returncode is None and not self._reader.at_eof()

    def is_due(self, rules: RecyclingRules) -> bool:
        """Return True if the process is to be replaced because of its jobs or its memory."""
        return recycling_reason(rules, jobs=self._jobs, memory=resident(self._process.pid)) is not None

    @property
    def start_failure(self) -> str:
        """Describe how the process ended before the handler started."""
        reason = f": {self._reason}" if self._reason else ""
        return f"{describe_exit(self._process.returncode)}, before the handler started{reason}"

    async def run(self, request: RunJob, on_start: Callable[[], None], attempt_logs: AttemptLogs) -> Outcome | None:
        """Run one job; return its outcome, or None if the process ended before the handler started.

        If the process ends during the job, the outcome is `Crashed`.
        """
        with contextlib.suppress(OSError):
            self._writer.write(encode_line(request))
            await self._writer.drain()
        started = False
        exiting = tasks.start(self._process.wait(), name="holdfast job process exit", awaited=True)
        try:
            async with asyncio.timeout(START_TIMEOUT_S) as loading:
                while (message := await self._receive(exiting)) is not None:
                    match message:
                        case HandlerStarted():
                            loading.reschedule(None)
                            started = True
                            on_start()
                        case HandlerLogged(logged):
                            attempt_logs.add(logged)
                        case HandlerFinished(outcome):
                            self._jobs += 1
                            return outcome
                        case StartFailed(reason):
                            self._reason = reason
        except TimeoutError:
            self._reason = f"the application was not loaded after {START_TIMEOUT_S:g} s"
        finally:
            exiting.cancel()
        await self.end()
        return Crashed(describe_exit(self._process.returncode)) if started else None

    async def _receive(self, exiting: "asyncio.Task[int]") -> FromJob | None:
        """Return the next message, or None after the process has exited.

        A program that the process started may keep the socket open, so the end of the stream is not enough.
        """
        reading = tasks.start(self._reader.readline(), name="holdfast job process message", awaited=True)
        try:
            awaited: list[asyncio.Task[Any]] = [reading, exiting]
            await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():  # the last messages may still be in the socket
                await asyncio.wait([reading], timeout=_FLUSH_TIMEOUT_S)
            with contextlib.suppress(OSError, ValueError):
                if reading.done() and (text := reading.result()):
                    return read_from_job(text)
            return None
        finally:
            reading.cancel()

    async def end(self) -> None:
        """End the process and all programs it started: SIGTERM first, then SIGKILL."""
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
            self._shared_state.remove_group(self._entry)
            self._entry = None

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
