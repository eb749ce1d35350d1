"""Processes that have the application loaded, and of which others are forked when they are needed, at once.

Whoever asks becomes the parent of what is forked, by having it adopted, as if it had started it itself: it waits for
it, ends with it, and loses nothing but time when the nursery dies. A nursery has no thread, no event loop and no
connection, and neither has the application in it, or it is none: see `fork_hazard`.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import gc
import os
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from holdfast.worker.processes.process_control import die_with_parent, name_process

FORK_TIMEOUT_S = 10.0
"""Seconds that a nursery may take to fork: one that takes longer is given up."""

SOCKET_TYPE = (
    (socket.AF_UNIX, socket.SOCK_SEQPACKET) if sys.platform == "linux" else (socket.AF_UNIX, socket.SOCK_DGRAM)
)
"""What a nursery is asked over: each message arrives whole."""

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_MAX_DESCRIPTORS = 4
_PID = struct.Struct("<i")
_HARMLESS = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
"""Devices that it does not matter to share."""


class Process(Protocol):
    """What was started, here or in a nursery."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int:
        """Until it has ended; its exit code, or the negative number of the signal that ended it."""


class ForkedProcess:
    """A process that was forked in a nursery and adopted here. It is waited for whether or not anybody cares."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._descriptor = os.pidfd_open(pid)
        self._loop.add_reader(self._descriptor, self._reap)

    async def wait(self) -> int:
        """See `Process`."""
        await self._ended.wait()
        return self.returncode or 0

    def _reap(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        try:
            _, status = os.waitpid(self.pid, 0)
            self.returncode = os.waitstatus_to_exitcode(status)
        except ChildProcessError:  # somebody waited for all children of this process
            self.returncode = -signal.SIGKILL
        self._ended.set()


class ForkServer:
    """A nursery as its parent sees it."""

    def __init__(self, line: socket.socket) -> None:
        line.setblocking(False)  # noqa: FBT003 - the only signature there is
        self._line: socket.socket | None = line
        self._lock = asyncio.Lock()
        self._requests: set[asyncio.Task[ForkedProcess | None]] = set()

    @property
    def gone(self) -> bool:
        """Whether it can be asked no more."""
        return self._line is None

    async def start(self, descriptors: Sequence[int]) -> ForkedProcess | None:
        """A new process with copies of these; None if it must be had in another way."""
        request = asyncio.create_task(self._request([os.dup(each) for each in descriptors]))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:  # it comes all the same, and nobody wants it
            request.add_done_callback(_kill_unused)
            raise

    def close(self) -> None:
        """Ask it no more: it ends."""
        if self._line is not None:
            self._line.close()
            self._line = None

    async def _request(self, descriptors: list[int]) -> ForkedProcess | None:
        leave, grant = os.pipe()
        try:
            async with self._lock:
                if self._line is None:
                    return None
                try:
                    with adopting():
                        socket.send_fds(self._line, [b"fork"], [leave, *descriptors])
                        async with asyncio.timeout(FORK_TIMEOUT_S):
                            answer = await asyncio.get_running_loop().sock_recv(self._line, _PID.size)
                    (pid,) = _PID.unpack(answer)
                    forked = ForkedProcess(pid) if pid else None
                    os.write(grant, b"y")
                except (OSError, TimeoutError, struct.error):
                    self.close()
                    return None
                return forked
        finally:
            for each in (leave, grant, *descriptors):
                os.close(each)


def _kill_unused(request: "asyncio.Task[ForkedProcess | None]") -> None:
    if not request.cancelled() and request.exception() is None and (pid := request.result()) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid.pid, signal.SIGKILL)


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Be the parent of processes below this one whose own parent ends meanwhile.

    No longer than it takes: what handlers leave behind is the init process's, which waits for it.
    """
    control = ctypes.CDLL(None, use_errno=True).prctl
    before = ctypes.c_int()
    control(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    if control(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "this process cannot adopt others")
    try:
        yield
    finally:
        control(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def serve(line: socket.socket) -> list[int]:
    """Fork a process whenever one is asked for. Returns in each of those, with the descriptors meant for it.

    In the nursery itself it never returns: it ends with the one who asks.
    """
    parent = os.getppid()
    name_process("hf-forkserver")
    gc.collect()
    gc.freeze()  # a collector that goes through all of it would have each process keep a copy
    while True:
        try:
            asked, descriptors, _, _ = socket.recv_fds(line, 64, _MAX_DESCRIPTORS)
        except InterruptedError:
            continue
        if not asked:
            os._exit(0)
        pid = 0
        with contextlib.suppress(OSError):  # too many processes: it is tried in another way, and told
            if not (pid := _double_fork(parent)):
                line.close()
                return _await_permission(*descriptors)
        for each in descriptors:
            os.close(each)
        with contextlib.suppress(OSError):
            line.send(_PID.pack(pid))


def _double_fork(parent: int) -> int:
    """The id of a new process, whose parent is the asker by now; 0 in that process."""
    told, tell = os.pipe()
    middle = os.fork()
    if not middle:
        middle = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            os._exit(1)
        if pid:
            os.write(tell, _PID.pack(pid))
            os._exit(0)
        os.close(told)
        os.close(tell)
        _reparent(middle, parent)
        return 0
    os.close(tell)
    try:
        answer = os.read(told, _PID.size)
    finally:
        os.close(told)
        os.waitpid(middle, 0)
    if not answer:
        raise OSError("no process could be forked")
    child: int = _PID.unpack(answer)[0]
    return child


def _reparent(middle: int, parent: int) -> None:
    """In the new process: belong to the asker, and to nobody else."""
    while os.getppid() == middle:
        time.sleep(0.0005)
    os.setsid()
    die_with_parent()
    if os.getppid() != parent:  # it died first
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _await_permission(leave: int, *descriptors: int) -> list[int]:
    """In the new process: wait until the asker knows of it. One that gave up may have begun another in its place."""
    if not os.read(leave, 1):
        os._exit(0)
    os.close(leave)
    for each in descriptors:
        os.set_inheritable(each, False)  # noqa: FBT003 - the only signature there is
    return list(descriptors)


def fork_hazard(ours: Collection[int]) -> str | None:
    """What the application has that no two processes can have; None if it may be forked as it is.

    A thread is not copied, but the locks it holds are. A connection would be used by both ends of a fork at once.
    `ours`: descriptors that are not the application's.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return "this system cannot fork it safely"
    with contextlib.suppress(OSError):
        os.close(os.pidfd_open(os.getpid()))
        threads = len(list(Path("/proc/self/task").iterdir()))
        if threads > 1:
            return f"{threads - 1} thread{'s' if threads > 2 else ''} of its own run{'' if threads > 2 else 's'}"
        for each in open_descriptors() - set(ours):
            if what := _shared(each):
                return f"it has {what} open"
        return None
    return "this system does not tell whether it may be forked"


def open_descriptors() -> set[int]:
    """What this process has open, where the system tells."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for each in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208 - read to its end at once
            with contextlib.suppress(OSError):  # it was that of the list itself, and may be another's next
                os.fstat(each)
                found.add(each)
    return found


def _shared(descriptor: int) -> str | None:
    """What an open descriptor leads to, if two processes must not both use it."""
    try:
        kind = os.fstat(descriptor).st_mode
        target = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        appending = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
    except OSError:  # it was that of the list itself
        return None
    if target in _HARMLESS or (stat.S_ISREG(kind) and appending):
        return None
    return target
