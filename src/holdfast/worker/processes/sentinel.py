"""Sentinel process: kills programs of handlers once worker and supervisor are dead."""

import os
import signal
import sys
import time
from contextlib import suppress

from holdfast.worker.processes.process_control import name_process, signal_when_parent_dies
from holdfast.worker.processes.shared_state import SharedState

_CHECK_INTERVAL_S = 5.0
_MAX_DESCRIPTORS = 1 << 16


def set_up(shared_state: SharedState) -> None:
    """Fork a sentinel; once this worker has ended, it kills the programs that handlers started.

    Usually the supervisor does this. If the supervisor is killed, the kernel kills the worker and job processes, but
    not the programs that handlers started; such a program would run next to the one that the next attempt starts.
    Call it before there are threads or an event loop.
    """
    worker = os.getpid()
    if os.fork():
        return
    try:
        name_process("hf-sentinel")
        _wait_for_exit(worker)
        for group in shared_state.groups():
            _kill(group)
    finally:
        _kill(worker)  # the group of the worker, of which this process is a member
        os._exit(0)


def _wait_for_exit(worker: int) -> None:
    """Wait in the kernel for the worker's end, even if its interpreter is blocked."""
    # Peers that wait for the worker's sockets to close must not wait for this process.
    os.closerange(3, _MAX_DESCRIPTORS)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    signal_when_parent_dies(signal.SIGUSR1)
    while os.getppid() == worker:
        if sys.platform == "linux":
            signal.sigtimedwait({signal.SIGUSR1}, _CHECK_INTERVAL_S)
        else:
            time.sleep(0.5)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
