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
from holdfast.worker.processes.forkserver import LINE, Forked, Nursery, Process
from holdfast.worker.processes.process_control import die_with_parent
from holdfast.worker.processes.protocol import Failed, FromNursery, Ready, Unfit, read_from_nursery

_LONGEST_MESSAGE = 1 << 16


class CannotRun(Misconfigured):
    """The application cannot be loaded or run: starting it again would not help."""

    code = "cannot_run"


class Loaded:
    """Starts worker processes. Has a nursery started when the first of them is, and another one if that has died."""

    def __init__(self, command: Sequence[str], nursery: Sequence[str], say: Callable[[str], None]) -> None:
        self._command = command
        self._nursery_command = nursery
        self._say = say
        self._beginning = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._nursery: Nursery | None = None
        self._unfit = not nursery

    async def start(self, descriptors: Sequence[int]) -> Process:
        """A new process with these, forked where the application is loaded, if it can be; or it is loaded anew.

        Raises `CannotRun` if that would not help.
        """
        return await self._fork(descriptors) or await _run(self._command, descriptors)

    async def _fork(self, descriptors: Sequence[int]) -> Forked | None:
        for _ in range(2):  # that it died is seen by asking it
            async with self._beginning:
                if self._nursery is None and not self._unfit:
                    await self._begin()
                nursery = self._nursery
            if nursery is None:
                return None
            if (forked := await nursery.start(descriptors)) is not None:
                return forked
            if not nursery.gone:
                return None
            if self._nursery is nursery:
                self._nursery = None
        return None

    async def aclose(self) -> None:
        """End it; what was forked of it goes on."""
        if self._nursery is not None:
            self._nursery.close()
        self._unfit = True
        await self._end()

    async def _begin(self) -> None:
        await self._end()
        ours, theirs = socket.socketpair(*LINE)
        try:
            self._process = await _run(self._nursery_command, [theirs.fileno()])
        finally:
            theirs.close()
        ours.setblocking(False)  # noqa: FBT003 - the only signature there is
        try:
            message = await _read(ours)
        except BaseException:
            ours.close()
            raise
        if isinstance(message, Ready):
            self._nursery = Nursery(ours)
            return
        ours.close()
        if isinstance(message, Failed):
            raise CannotRun(message.message)
        if isinstance(message, Unfit):
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


async def _read(line: socket.socket) -> FromNursery | None:
    """What it says of the application; nothing if it died over it, as a worker would."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        if text := await asyncio.get_running_loop().sock_recv(line, _LONGEST_MESSAGE):
            return read_from_nursery(text)
    return None
