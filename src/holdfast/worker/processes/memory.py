"""Resident memory of processes."""

import resource
import sys
from pathlib import Path

_PAGE = resource.getpagesize()
_UNIT = 1 if sys.platform == "darwin" else 1024


def resident(pid: int | None = None) -> int | None:
    """Return the resident bytes of a process (None: this one), or None if unknown.

    Without /proc, only this process's own peak is available.
    """
    try:
        statm = Path("/proc", "self" if pid is None else str(pid), "statm").read_bytes()
        return int(statm.split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT if pid is None else None
