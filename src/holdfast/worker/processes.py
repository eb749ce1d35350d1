"""Runs jobs in processes of their own: a crash, a leak or an endless loop harms nobody else, and can be ended."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Sequence

import msgspec

from holdfast.model.job import Job
from holdfast.model.outcome import Crashed, Outcome
from holdfast.worker.board import Board
from holdfast.worker.lifeline import die_with_parent, told

GRACE = 2.0
"""Seconds between the request to end and the end."""

_LAST_WORDS = 0.2
LARGEST_LINE = 8 * 1024 * 1024
_ENCODE = msgspec.json.Encoder().encode
_OUTCOME: msgspec.json.Decoder[Outcome] = msgspec.json.Decoder(Outcome)


class JobProcesses:
    """Keeps processes that have the application loaded; each runs one job at a time."""

    def __init__(self, command: Sequence[str], board: Board) -> None:
        self._command = command
        self._board = board
        self._idle: list[JobProcess] = []

    async def run(self, job: Job) -> Outcome:
        """See `holdfast.worker.runner.Processes`."""
        process = self._idle.pop() if self._idle else await JobProcess.start(self._command, self._board)
        try:
            outcome = await process.run(job)
        except BaseException:
            await process.end()
            raise
        if process.alive:
            self._idle.append(process)
        else:
            await process.end()
        return outcome

    async def aclose(self) -> None:
        """End all that have nothing to do."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*[process.end() for process in idle])


class JobProcess:
    """One such process, the leader of a group: what its jobs start ends with it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        board: Board,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._board = board
        self._cell: int | None = board.started(process.pid)

    @classmethod
    async def start(cls, command: Sequence[str], board: Board) -> "JobProcess":
        """Start one and connect to it."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, *command, str(theirs.fileno()),
                pass_fds=(theirs.fileno(),), start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        finally:
            theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours, limit=LARGEST_LINE)
        return cls(process, reader, writer, board)

    @property
    def alive(self) -> bool:
        """Whether it can take another job."""
        return self._process.returncode is None and not self._reader.at_eof()

    async def run(self, job: Job) -> Outcome:
        """Run one job there. A process that ends before it answered has crashed with it."""
        with contextlib.suppress(OSError):
            self._writer.write(_ENCODE(job) + b"\n")
            await self._writer.drain()
        with contextlib.suppress(OSError, ValueError):
            if answer := await self._answer():
                return _OUTCOME.decode(answer)
        await self.end()
        return Crashed(told(self._process.returncode))

    async def _answer(self) -> bytes:
        """What it says; nothing when it has ended, even if something it started keeps the line open."""
        reading = asyncio.ensure_future(self._reader.readline())
        ending = asyncio.ensure_future(self._process.wait())
        try:
            await asyncio.wait([reading, ending], return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():  # what it said before it ended is on its way
                await asyncio.wait([reading], timeout=_LAST_WORDS)
            return reading.result() if reading.done() else b""
        finally:
            reading.cancel()
            ending.cancel()

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
