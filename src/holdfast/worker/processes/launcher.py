"""Launcher of worker processes: forks them from one loaded application if that is safe."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence

import msgspec

from holdfast.errors import Misconfigured
from holdfast.worker.processes.forkserver import SOCKET_TYPE, ForkedProcess, ForkServer, Process
from holdfast.worker.processes.process_control import die_with_parent
from holdfast.worker.processes.protocol import (
    CannotFork,
    ForkServerReady,
    FromForkServer,
    StartFailed,
    read_from_forkserver,
)

_MAX_MESSAGE_BYTES = 1 << 16


class CannotRun(Misconfigured):
    """The application cannot be loaded or run, and another attempt would fail in the same way."""

    code = "cannot_run"


class WorkerLauncher:
    """Starts worker processes, forked from a fork server that it starts and replaces.

    Args:
        command: Arguments of Python that start a worker process without a fork server.
        forkserver: Arguments of Python that start a fork server; empty to execute every worker process.
        say: Prints a message for the operator.
    """

    def __init__(self, command: Sequence[str], forkserver: Sequence[str], say: Callable[[str], None]) -> None:
        self._command = command
        self._forkserver_command = forkserver
        self._say = say
        self._start_lock = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._forkserver: ForkServer | None = None
        self._cannot_fork = not forkserver
        self._stale = False

    async def start(self, descriptors: Sequence[int]) -> Process:
        """Start a worker process with these descriptors: forked if possible, or executed.

        Raises:
            CannotRun: The application cannot be loaded.
        """
        return await self._fork(descriptors) or await _execute(self._command, descriptors)

    async def _fork(self, descriptors: Sequence[int]) -> ForkedProcess | None:
        for _ in range(2):  # only a request reveals that a fork server is dead, so replace it once and repeat
            async with self._start_lock:
                if self._stale:
                    self._discard_forkserver()
                if self._forkserver is None and not self._cannot_fork:
                    await self._start_forkserver()
                forkserver = self._forkserver
            if forkserver is None:
                return None
            if (forked := await forkserver.start(descriptors)) is not None:
                return forked
            if not forkserver.gone:
                return None
            if self._forkserver is forkserver:
                self._forkserver = None
        return None

    def reload(self) -> None:
        """Load the application again for the next worker process.

        Running processes keep what they have loaded.
        """
        self._stale = True

    async def aclose(self) -> None:
        """End the fork server; processes that it forked continue."""
        if self._forkserver is not None:
            self._forkserver.close()
        self._cannot_fork = True
        await self._end_forkserver()

    def _discard_forkserver(self) -> None:
        if self._forkserver is not None:
            self._forkserver.close()
            self._forkserver = None
        self._cannot_fork = not self._forkserver_command
        self._stale = False

    async def _start_forkserver(self) -> None:
        await self._end_forkserver()
        ours, theirs = socket.socketpair(*SOCKET_TYPE)
        try:
            self._process = await _execute(self._forkserver_command, [theirs.fileno()])
        finally:
            theirs.close()
        ours.setblocking(False)  # noqa: FBT003 - the only signature there is
        try:
            message = await _read(ours)
        except BaseException:
            ours.close()
            raise
        if isinstance(message, ForkServerReady):
            self._forkserver = ForkServer(ours)
            return
        ours.close()
        if isinstance(message, StartFailed):
            raise CannotRun(message.message)
        if isinstance(message, CannotFork):
            self._cannot_fork = True
            self._say(f"each process loads the application itself, because forking it is unsafe: {message.reason}")

    async def _end_forkserver(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
            self._process = None


async def _execute(command: Sequence[str], descriptors: Sequence[int]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, *command, *(str(descriptor) for descriptor in descriptors),
        pass_fds=descriptors, start_new_session=True, preexec_fn=die_with_parent,
    )  # fmt: skip


async def _read(channel: socket.socket) -> FromForkServer | None:
    """Return the fork server's message about the application, or None if it died while loading."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        if text := await asyncio.get_running_loop().sock_recv(channel, _MAX_MESSAGE_BYTES):
            return read_from_forkserver(text)
    return None
