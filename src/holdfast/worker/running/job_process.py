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
from holdfast.worker.context.attempt_logs import Logbook
from holdfast.worker.processes.forkserver import Nursery, Process
from holdfast.worker.processes.process_control import die_with_parent, told
from holdfast.worker.processes.protocol import Begun, Ended, Failed, FromJob, Given, Logged, line, read_from_job
from holdfast.worker.processes.shared_state import Board

GRACE = 2.0
"""Seconds between the request to end and the end."""

START_WITHIN = 120.0
"""Seconds that the application may take to load. They count for no job's timeout."""

_LAST_WORDS = 0.2
LARGEST_LINE = 8 * 1024 * 1024


class JobProcesses:
    """Keeps processes that have the application loaded; each runs one job at a time."""

    def __init__(self, command: Sequence[str], board: Board, nursery: Nursery | None = None) -> None:
        self._command = command
        self._board = board
        self._nursery = nursery
        self._idle: list[JobProcess] = []

    async def run(self, job: Job, *, begun: Callable[[], None], logbook: Logbook, cell: int | None) -> Outcome:
        """See `holdfast.worker.running.runner.Processes`."""
        while True:
            kept = self._idle.pop() if self._idle else None
            process = kept or await JobProcess.start(self._command, self._board, self._nursery)
            try:
                outcome = await process.run(Given(job, cell), begun, logbook)
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
        board: Board,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._board = board
        self._cell: int | None = board.started(process.pid)
        self._reason = ""

    @classmethod
    async def start(cls, command: Sequence[str], board: Board, nursery: Nursery | None) -> "JobProcess":
        """Start one and connect to it: forked where the application is loaded already, if it can be."""
        ours, theirs = socket.socketpair()
        descriptors = [theirs.fileno(), board.descriptor]
        try:
            process: Process | None = await nursery.start(descriptors) if nursery else None
            if process is None:
                process = await asyncio.create_subprocess_exec(
                    sys.executable, *command, *(str(each) for each in descriptors),
                    pass_fds=descriptors, start_new_session=True, preexec_fn=die_with_parent,
                )  # fmt: skip
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=LARGEST_LINE)
        return cls(process, reader, writer, board)

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._process.returncode is None and not self._reader.at_eof()

    @property
    def why_not_begun(self) -> str:
        """How it ended before it came to the job it was given."""
        return f"{told(self._process.returncode)}, before the handler began{self._reason and f': {self._reason}'}"

    async def run(self, given: Given, begun: Callable[[], None], logbook: Logbook) -> Outcome | None:
        """Run one job there. A process that ends before it answered has crashed with it; None if it had not begun."""
        with contextlib.suppress(OSError):
            self._writer.write(line(given))
            await self._writer.drain()
        has_begun = False
        ending = asyncio.ensure_future(self._process.wait())
        try:
            async with asyncio.timeout(START_WITHIN) as loading:
                while (message := await self._hear(ending)) is not None:
                    match message:
                        case Begun():
                            loading.reschedule(None)
                            has_begun = True
                            begun()
                        case Logged(logged):
                            logbook.add(logged)
                        case Ended(outcome):
                            return outcome
                        case Failed(reason):
                            self._reason = reason
        except TimeoutError:
            self._reason = f"it was not loaded after {START_WITHIN:g} s"
        finally:
            ending.cancel()
        await self.end()
        return Crashed(told(self._process.returncode)) if has_begun else None

    async def _hear(self, ending: "asyncio.Future[int]") -> FromJob | None:
        """What it says; nothing when it has ended, even if something it started keeps the line open."""
        reading = asyncio.ensure_future(self._reader.readline())
        try:
            either: list[asyncio.Future[Any]] = [reading, ending]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():  # what it said before it ended is on its way
                await asyncio.wait([reading], timeout=_LAST_WORDS)
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
                await asyncio.wait_for(asyncio.shield(self._process.wait()), GRACE)
            except (TimeoutError, asyncio.CancelledError):
                self._signal(signal.SIGKILL)
                await self._process.wait()
        self._signal(signal.SIGKILL)
        self._writer.close()
        if self._cell is not None:
            self._board.ended(self._cell)
            self._cell = None

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)
