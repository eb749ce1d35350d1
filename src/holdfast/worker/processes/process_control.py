"""Process lifetime, names and exit codes: no process outlives the one that started it."""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies. Call it between fork and exec.

    Linux only; on other systems a child notices the closed socket unless its handlers block it.
    """
    signal_when_parent_dies(signal.SIGKILL)


def signal_when_parent_dies(number: int) -> None:
    """Ask the kernel to send this process a signal when its parent dies (Linux only)."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number)


def name_process(name: str) -> None:
    """Set the name that `ps` and `top` show, at most 15 characters (Linux only)."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NAME, name.encode()[:15])


def describe_exit(code: int | None) -> str:
    """Describe how a process ended."""
    if code is None:
        return "it does not respond"
    if code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
        return f"signal {-code}"
    return f"exit code {code}"


def exit_now(code: int) -> NoReturn:
    """Exit without waiting for threads."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
