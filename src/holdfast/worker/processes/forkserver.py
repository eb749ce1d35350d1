"""Fork server: a process with the application loaded that forks further processes.

The requester becomes the parent of a forked process, because it is a subreaper while the server double-forks. So it
can wait for the process, the process dies with it, and a fork server that dies costs nothing but a slower next start.
A fork server has no thread, event loop or connection, and the loaded application must have none either; see
`fork_hazard`.
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

from holdfast import tasks
from holdfast.worker.processes.process_control import die_with_parent, name_process

FORK_TIMEOUT_S = 10.0
"""Time limit for one fork request; after it the fork server is abandoned."""

SOCKET_TYPE = (
    (socket.AF_UNIX, socket.SOCK_SEQPACKET) if sys.platform == "linux" else (socket.AF_UNIX, socket.SOCK_DGRAM)
)
"""Type of the socket pair to a fork server; it preserves message boundaries."""

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_MAX_DESCRIPTORS = 4
_PID = struct.Struct("<i")
_SHAREABLE_DEVICES = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
"""Devices that several processes can safely share."""


class Process(Protocol):
    """Child process, started by exec or forked by a fork server."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    async def wait(self) -> int:
        """Wait for its end; return its exit code, or the negative number of a signal."""


class ForkedProcess(Process):
    """Process that a fork server forked and this process adopted.

    It is reaped even if no caller waits for it.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._returncode: int | None = None
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._descriptor = os.pidfd_open(pid)
        self._loop.add_reader(self._descriptor, self._reap)

    @property
    def pid(self) -> int:
        return self._pid

    @property
    def returncode(self) -> int | None:
        return self._returncode

    async def wait(self) -> int:
        await self._ended.wait()
        return self._returncode or 0

    def _reap(self) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        try:
            _, status = os.waitpid(self._pid, 0)
            self._returncode = os.waitstatus_to_exitcode(status)
        except ChildProcessError:  # other code in this process has waited for any child
            self._returncode = -signal.SIGKILL
        self._ended.set()


class ForkServer:
    """Client of a fork server, in its parent process."""

    def __init__(self, channel: socket.socket) -> None:
        channel.setblocking(False)  # noqa: FBT003 - the only signature there is
        self._channel: socket.socket | None = channel
        self._lock = asyncio.Lock()

    @property
    def gone(self) -> bool:
        """True if the fork server is dead or was closed."""
        return self._channel is None

    async def start(self, descriptors: Sequence[int]) -> ForkedProcess | None:
        """Fork a process with these descriptors; return None if the caller must start one by exec.

        If the caller is cancelled after the request was sent, the new process is killed.
        """
        copies = [os.dup(descriptor) for descriptor in descriptors]
        request = tasks.start(self._request(copies), name="holdfast fork request", awaited=True)
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:
            request.add_done_callback(_kill_unused)
            raise

    def close(self) -> None:
        """Close the channel, which ends the fork server; processes that it forked continue."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    async def _request(self, descriptors: list[int]) -> ForkedProcess | None:
        permission, grant = os.pipe()
        try:
            async with self._lock:
                if self._channel is None:
                    return None
                try:
                    with adopting():
                        socket.send_fds(self._channel, [b"fork"], [permission, *descriptors])
                        async with asyncio.timeout(FORK_TIMEOUT_S):
                            response = await asyncio.get_running_loop().sock_recv(self._channel, _PID.size)
                    (pid,) = _PID.unpack(response)
                    forked = ForkedProcess(pid) if pid else None
                    os.write(grant, b"y")
                except (OSError, TimeoutError, struct.error):
                    self.close()
                    return None
                return forked
        finally:
            for descriptor in (permission, grant, *descriptors):
                os.close(descriptor)


def _kill_unused(request: "asyncio.Task[ForkedProcess | None]") -> None:
    if not request.cancelled() and request.exception() is None and (process := request.result()) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Make this process a subreaper, the parent of descendants whose own parent exits.

    Keep the block short, so that processes which handlers leave behind are adopted and reaped by init instead.
    """
    control = ctypes.CDLL(None, use_errno=True).prctl
    before = ctypes.c_int()
    control(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    if control(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "this process cannot become a subreaper")
    try:
        yield
    finally:
        control(_PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def serve(channel: socket.socket) -> list[int]:
    """Serve fork requests; return only in forked processes, with the request's descriptors.

    In the fork server itself this never returns: the process exits when the other end of the channel is closed.
    """
    parent = os.getppid()
    name_process("hf-forkserver")
    gc.collect()
    gc.freeze()  # a collection writes to every object and would make each process copy all shared pages
    while True:
        try:
            request, descriptors, _, _ = socket.recv_fds(channel, 64, _MAX_DESCRIPTORS)
        except InterruptedError:
            continue
        if not request:
            os._exit(0)
        pid = 0
        with contextlib.suppress(
            OSError
        ):  # process limit reached: respond with 0, so that the requester starts one by exec
            if not (pid := _double_fork(parent)):
                channel.close()
                return _await_permission(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(OSError):
            channel.send(_PID.pack(pid))


def _double_fork(parent: int) -> int:
    """Fork twice, so that the requester adopts the new process; return its id, 0 inside it."""
    source, sink = os.pipe()
    middle = os.fork()
    if not middle:
        middle = os.getpid()
        try:
            pid = os.fork()
        except OSError:
            os._exit(1)
        if pid:
            os.write(sink, _PID.pack(pid))
            os._exit(0)
        os.close(source)
        os.close(sink)
        _reparent(middle, parent)
        return 0
    os.close(sink)
    try:
        packed = os.read(source, _PID.size)
    finally:
        os.close(source)
        os.waitpid(middle, 0)
    if not packed:
        raise OSError("no process could be forked")
    child: int = _PID.unpack(packed)[0]
    return child


def _reparent(middle: int, parent: int) -> None:
    """In the new process: wait for adoption, start a session, die with the requester."""
    while os.getppid() == middle:
        time.sleep(0.0005)
    os.setsid()
    die_with_parent()
    if os.getppid() != parent:  # the requester died first
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _await_permission(permission: int, *descriptors: int) -> list[int]:
    """In the new process: wait for the requester's permission; exit if it has given up.

    A requester that gave up may have started another process instead.
    """
    if not os.read(permission, 1):
        os._exit(0)
    os.close(permission)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - the only signature there is
    return list(descriptors)


def fork_hazard(inherited: Collection[int]) -> str | None:
    """Return why the loaded application must not be forked, or None if it is safe.

    Forking does not copy threads, but it copies the locks they hold. Both processes would use a copied connection.

    Args:
        inherited: Descriptors that were open before the application was loaded.
    """
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return "this system does not support safe forking"
    with contextlib.suppress(OSError):
        os.close(os.pidfd_open(os.getpid()))
        threads = len(list(Path("/proc/self/task").iterdir()))
        if threads > 1:
            return f"it has started {threads - 1} thread{'s' if threads > 2 else ''}"
        for descriptor in open_descriptors() - set(inherited):
            if target := _unshareable_target(descriptor):
                return f"it has {target} open"
        return None
    return "this system does not show whether forking is safe"


def open_descriptors() -> set[int]:
    """Return the open descriptors of this process; empty if the system has no /proc."""
    descriptors: set[int] = set()
    with contextlib.suppress(OSError):
        for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208 - closes the directory first
            with contextlib.suppress(OSError):  # the descriptor of the directory itself
                os.fstat(descriptor)
                descriptors.add(descriptor)
    return descriptors


def _unshareable_target(descriptor: int) -> str | None:
    """Return the target of an open descriptor if two processes must not share it."""
    try:
        kind = os.fstat(descriptor).st_mode
        target = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        appending = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND
    except OSError:  # closed since the list was made
        return None
    if target in _SHAREABLE_DEVICES or (stat.S_ISREG(kind) and appending):
        return None
    return target
