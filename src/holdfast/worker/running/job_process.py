"""Job processes run jobs outside of the worker process, so that a crash harms only the job."""

import asyncio
import contextlib
import itertools
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
    StopHandler,
    ToJob,
    encode_line,
    read_from_job,
)
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.running.runner import Processes

TERMINATE_TIMEOUT_S = 2.0
"""Seconds between SIGTERM and SIGKILL."""

START_TIMEOUT_S = 120.0
"""Time limit for loading the application; it does not count towards a job's timeout."""

MAX_SUSPECT_PROCESSES = 8
"""Largest number of job processes in which a worker runs suspects, for each group size.

A dead worker may leave hundreds of suspects, and a lack of memory may have been the cause.
"""

_FLUSH_TIMEOUT_S = 0.2
"""Seconds to wait for the last messages of a process that has exited."""

MAX_LINE_BYTES = 8 * 1024 * 1024
"""Largest message between a worker and a job process."""


class JobProcesses(Processes):
    """Pool of job processes that have loaded the application.

    A process runs one job at a time, or a group of suspects.

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
        self._groups: dict[int, list[_Group]] = {}
        """Groups of suspects that others may join, by size."""
        self._places: dict[int, asyncio.Semaphore] = {}
        """Free places in groups, by size. Groups of one size never wait for those of another."""

    async def run(
        self,
        job: Job,
        *,
        group_size: int | None,
        on_start: Callable[[], None],
        attempt_logs: AttemptLogs,
        entry: int | None,
    ) -> Outcome:
        async with self._place(group_size):
            while True:
                group = self._join(group_size)
                try:
                    process = await asyncio.shield(group.starting)
                    outcome = await process.run(job, entry, on_start, attempt_logs)
                finally:
                    await self._leave(group)
                if outcome is not None:
                    return outcome
                if process.failed_to_start:
                    return Crashed(process.start_failure)
                # The process died while it was idle or because of another job: use another one.

    async def aclose(self) -> None:
        """End all idle processes."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*[process.end() for process in idle])

    def _place(self, group_size: int | None) -> contextlib.AbstractAsyncContextManager[None]:
        """Return a context manager that waits for a place in a group of suspects."""
        if group_size is None:
            return contextlib.nullcontext()
        return self._places.setdefault(group_size, asyncio.Semaphore(MAX_SUSPECT_PROCESSES * group_size))

    def _join(self, group_size: int | None) -> "_Group":
        """Join a group of suspects with a free place, or form a new one."""
        joinable = self._groups.setdefault(group_size, []) if group_size is not None else []
        for group in joinable:
            if group.members < group.size and group.joinable:
                group.members += 1
                return group
        group = _Group(group_size or 1, tasks.start(self._process(), name="holdfast job process start", awaited=True))
        joinable.append(group)
        return group

    async def _process(self) -> "JobProcess":
        while self._idle:
            if (process := self._idle.pop()).alive:
                return process
            await process.end()
        return await JobProcess.start(self._command, self._shared_state, self._forkserver)

    async def _leave(self, group: "_Group") -> None:
        """Leave a group. The last member ends its process, or keeps it for other jobs."""
        group.members -= 1
        if group.members:
            return
        if group in (joinable := self._groups.get(group.size, [])):
            joinable.remove(group)
        with contextlib.suppress(Exception):  # raised to the members of the group
            process = await group.starting
            if process.alive and not process.is_due(self._recycling):
                self._idle.append(process)
            else:
                await process.end()


class _Group:
    """Process and the number of jobs that use it."""

    def __init__(self, size: int, starting: "asyncio.Task[JobProcess]") -> None:
        self.size = size
        self.starting = starting
        self.members = 1

    @property
    def joinable(self) -> bool:
        """False if the process is dead; its members are about to leave."""
        if not self.starting.done():
            return True
        return not self.starting.cancelled() and self.starting.exception() is None and self.starting.result().alive


class _Run:
    """Job in a job process."""

    def __init__(self, on_start: Callable[[], None], attempt_logs: AttemptLogs) -> None:
        self.on_start = on_start
        self.attempt_logs = attempt_logs
        self.started = False
        self.done: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()


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
        self._entry = shared_state.add_group(process.pid)
        self._reason = ""
        self._jobs = 0
        self._numbers = itertools.count(1)
        self._runs: dict[int, _Run] = {}
        self._has_started = False
        self._ended_by_worker = False
        self._listener = tasks.start(self._listen(), name="holdfast job process messages", awaited=True)

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
        return self._process.returncode is None and not self._listener.done() and not self._ended_by_worker

    def is_due(self, rules: RecyclingRules) -> bool:
        """Return True if the process is to be replaced because of its jobs or its memory."""
        return recycling_reason(rules, jobs=self._jobs, memory=resident(self._process.pid)) is not None

    @property
    def failed_to_start(self) -> bool:
        """True if the process ended by itself before any handler started."""
        return not self._has_started and not self._ended_by_worker

    @property
    def start_failure(self) -> str:
        """Describe how the process ended before the handler started."""
        reason = f": {self._reason}" if self._reason else ""
        return f"{describe_exit(self._process.returncode)}, before the handler started{reason}"

    async def run(
        self, job: Job, entry: int | None, on_start: Callable[[], None], attempt_logs: AttemptLogs
    ) -> Outcome | None:
        """Run a job; return its outcome, or None if the process ended before the handler started.

        If the process ends during the job, the outcome is `Crashed`. Cancelling the call ends the process, unless
        other jobs run in it and the handler stops.
        """
        if self._listener.done():
            return None
        number, run = next(self._numbers), _Run(on_start, attempt_logs)
        self._runs[number] = run
        start_timer = asyncio.get_running_loop().call_later(START_TIMEOUT_S, self._give_up_start, run)
        try:
            await self._send(RunJob(number, job, entry))
            return await asyncio.shield(run.done)
        except BaseException:
            await self._stop(number, run)
            raise
        finally:
            start_timer.cancel()
            self._runs.pop(number, None)

    async def _stop(self, number: int, run: _Run) -> None:
        """Stop a handler; end the process if the handler is its only one or does not stop."""
        if len(self._runs) > 1:
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                async with asyncio.timeout(TERMINATE_TIMEOUT_S):
                    await self._send(StopHandler(number))
                    await asyncio.shield(run.done)
        if not run.done.done():
            await self.end()

    def _give_up_start(self, run: _Run) -> None:
        if not run.started:
            self._reason = f"the application was not loaded after {START_TIMEOUT_S:g} s"
            self._signal(signal.SIGKILL)

    async def _send(self, message: ToJob) -> None:
        with contextlib.suppress(OSError):
            self._writer.write(encode_line(message))
            await self._writer.drain()

    async def _listen(self) -> None:
        """Handle the messages of the process until it ends; then end its runs."""
        exiting = tasks.start(self._process.wait(), name="holdfast job process exit", awaited=True)
        try:
            while (message := await self._receive(exiting)) is not None:
                self._handle(message)
        finally:
            exiting.cancel()
            await self._terminate()
            self._signal(signal.SIGKILL)  # programs that the process started
            self._writer.close()
            self._shared_state.remove_group(self._entry)
            for run in self._runs.values():
                if not run.done.done():
                    run.done.set_result(Crashed(describe_exit(self._process.returncode)) if run.started else None)

    def _handle(self, message: FromJob) -> None:
        match message:
            case StartFailed(reason):
                self._reason = reason
            case HandlerStarted(number):
                self._has_started = True
                if (run := self._runs.get(number)) is not None:
                    run.started = True
                    run.on_start()
            case HandlerLogged(number, line):
                if (run := self._runs.get(number)) is not None:
                    run.attempt_logs.add(line)
            case HandlerFinished(number, outcome):
                self._jobs += 1
                if (run := self._runs.get(number)) is not None and not run.done.done():
                    run.done.set_result(outcome)

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
        if not self._listener.done():
            self._ended_by_worker = True
            await self._terminate()
            await asyncio.wait([self._listener])

    async def _terminate(self) -> None:
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(asyncio.shield(self._process.wait()), TERMINATE_TIMEOUT_S)
            except (TimeoutError, asyncio.CancelledError):
                self._signal(signal.SIGKILL)
                await self._process.wait()

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
