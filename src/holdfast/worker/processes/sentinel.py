"""Ends what the handlers of a worker process started, when nobody else is left to do it."""

import os
import signal
import sys
import time
from contextlib import suppress

from holdfast.worker.processes.process_control import name_process, signal_when_parent_dies
from holdfast.worker.processes.shared_state import Board

_LOOK_EVERY = 5.0
_MOST_DESCRIPTORS = 1 << 16


def set_up(board: Board) -> None:
    """Fork a process that waits for the end of this one and then kills all that its handlers left behind.

    Usually the supervisor does so. If that was killed, the kernel kills the processes it had started, and those that
    they had started, but not what handlers started in turn: a program that runs for hours, say, and that the next
    attempt starts a second time. Called before there are threads or an event loop.
    """
    worker = os.getpid()
    if os.fork():
        return
    try:
        name_process("hf-sentinel")
        _wait_for_the_end_of(worker)
        for group in board.groups():
            _kill(group)
    finally:
        _kill(worker)  # the group that this process is in as well
        os._exit(0)


def _wait_for_the_end_of(worker: int) -> None:
    """Wait in the kernel: neither a blocked interpreter nor a stopped event loop of the worker is in the way."""
    os.closerange(3, _MOST_DESCRIPTORS)  # whoever waits for the worker's end of a line must not wait for this one's
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    signal_when_parent_dies(signal.SIGUSR1)
    while os.getppid() == worker:
        if sys.platform == "linux":
            signal.sigtimedwait({signal.SIGUSR1}, _LOOK_EVERY)
        else:
            time.sleep(0.5)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
