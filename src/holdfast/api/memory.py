"""Return of freed memory to the operating system after large requests."""

import asyncio
import ctypes
from typing import Any

TRIM_DELAY_S = 1.0
"""Time from the end of a large request to the return of its memory."""


class MemoryTrimmer:
    """Asks the C library to return freed memory, which it would keep for itself otherwise."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def trim_soon(self) -> None:
        """Return freed memory in a second."""
        if self._timer is None and _TRIM is not None:
            self._timer = asyncio.get_running_loop().call_later(TRIM_DELAY_S, self._trim)

    def _trim(self) -> None:
        self._timer = None
        if _TRIM is not None:
            _TRIM(0)


_TRIM: Any
try:
    _TRIM = ctypes.CDLL(None).malloc_trim
except (OSError, AttributeError):  # only glibc has it
    _TRIM = None
