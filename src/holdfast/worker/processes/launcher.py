"""The application, loaded once on a node: what its worker processes are forked of, if it can be."""

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
    """The application cannot be loaded or run: starting it again would not help."""

    code = "cannot_run"


class WorkerLauncher:
    """Starts worker processes. Has a nursery started when the first of them is, and another one if that has died."""

    def __init__(self, command: Sequence[str], forkserver: Sequence[str], say: Callable[[str], None]) -> None:
        self._command = command
        self._forkserver_command = forkserver
        self._say = say
        self._beginning = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._forkserver: ForkServer | None = None
        self._unfit = not forkserver

    async def start(self, descriptors: Sequence[int]) -> Process:
        """A new process with these, forked where the application is loaded, if it can be; or it is loaded anew.

        Raises `CannotRun` if that would not help.
        """
        return await self._fork(descriptors) or await _run(self._command, descriptors)

    async def _fork(self, descriptors: Sequence[int]) -> ForkedProcess | None:
        for _ in range(2):  # that it died is seen by asking it
            async with self._beginning:
                if self._forkserver is None and not self._unfit:
                    await self._begin()
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

    async def aclose(self) -> None:
        """End it; what was forked of it goes on."""
        if self._forkserver is not None:
            self._forkserver.close()
        self._unfit = True
        await self._end()

    async def _begin(self) -> None:
        await self._end()
        ours, theirs = socket.socketpair(*SOCKET_TYPE)
        try:
            self._process = await _run(self._forkserver_command, [theirs.fileno()])
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
            self._unfit = True
            self._say(f"each process loads the application anew, since once that is loaded {message.reason}")

    async def _end(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
            self._process = None


async def _run(command: Sequence[str], descriptors: Sequence[int]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, *command, *(str(each) for each in descriptors),
        pass_fds=descriptors, start_new_session=True, preexec_fn=die_with_parent,
    )  # fmt: skip


async def _read(line: socket.socket) -> FromForkServer | None:
    """What it says of the application; nothing if it died over it, as a worker would."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        if text := await asyncio.get_running_loop().sock_recv(line, _MAX_MESSAGE_BYTES):
            return read_from_forkserver(text)
    return None
