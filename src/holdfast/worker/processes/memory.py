"""How much main memory a process has."""

import resource
import sys
from pathlib import Path

_PAGE = resource.getpagesize()
_UNIT = 1 if sys.platform == "darwin" else 1024


def resident(pid: int | None = None) -> int | None:
    """Bytes that a process (None: this one) has in main memory; None where that cannot be told.

    Where there is no /proc, a process knows of itself alone, and only the most it ever had.
    """
    try:
        told = Path("/proc", "self" if pid is None else str(pid), "statm").read_bytes()
        return int(told.split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT if pid is None else None
