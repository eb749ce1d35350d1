"""How processes of one worker hang together: none outlives the one that started it."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def die_with_parent() -> None:
    """Called in a new process before it becomes another program: the kernel kills it when its parent is gone.

    Only Linux knows this; elsewhere a child notices the closed socket, unless its handlers keep it from looking.
    """
    signal_when_parent_dies(signal.SIGKILL)


def signal_when_parent_dies(number: int) -> None:
    """Have the kernel send this process a signal when its parent is gone, where it can."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)


def name_process(name: str) -> None:
    """Have `ps` and `top` show this process by a name of its own, of at most 15 letters, where they can."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NAME, name.encode()[:15])


def told(code: int | None) -> str:
    """How a process ended, in words."""
    if code is None:
        return "it does not answer"
    if code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
        return f"signal {-code}"
    return f"exit code {code}"


def exit_now(code: int) -> NoReturn:
    """End this process without waiting for threads that will not end."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
