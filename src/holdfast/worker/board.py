"""Which jobs a child has begun, readable by its supervisor even after the child was killed.

A piece of shared memory with one cell a slot: writing it costs a handler next to nothing, and needs nobody to read it
unless the child dies.
"""

import mmap
import os
import struct
import tempfile
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from holdfast.model.ids import JobId
from holdfast.model.time import Duration, in_seconds

_CELL = struct.Struct("<16sIdq")  # job, fence (0: the cell is free), begin by the monotonic clock, timeout (0: none)


class Begun(NamedTuple):
    """A job whose handler has begun and not ended."""

    job: JobId
    fence: int
    since: float
    timeout: Duration | None

    def overdue(self, now: float) -> float:
        """For how many seconds it should have ended."""
        return 0.0 if self.timeout is None else max(0.0, now - self.since - in_seconds(self.timeout))


class Board:
    """Cells on a file without a name, shared by supervisor and child."""

    def __init__(self, descriptor: int, cells: int) -> None:
        self.descriptor = descriptor
        self.cells = cells
        self._memory = mmap.mmap(descriptor, cells * _CELL.size)
        self._free = list(range(cells))

    @classmethod
    def create(cls, cells: int) -> "Board":
        """A new board with all cells free."""
        descriptor = os.memfd_create("holdfast-board") if hasattr(os, "memfd_create") else _unnamed_file()
        os.ftruncate(descriptor, cells * _CELL.size)
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - the only signature there is
        return cls(descriptor, cells)

    def begin(self, job: JobId, fence: int, since: float, timeout: Duration | None) -> int:
        """A handler starts: the cell it is noted in."""
        cell = self._free.pop()
        _CELL.pack_into(self._memory, cell * _CELL.size, job.bytes, fence, since, timeout or 0)
        return cell

    def end(self, cell: int) -> None:
        """The attempt is over."""
        _CELL.pack_into(self._memory, cell * _CELL.size, b"", 0, 0.0, 0)
        self._free.append(cell)

    def begun(self) -> Iterator[Begun]:
        """The jobs whose handlers have begun and not ended."""
        for cell in range(self.cells):
            job, fence, since, timeout = _CELL.unpack_from(self._memory, cell * _CELL.size)
            if fence:
                yield Begun(JobId(UUID(bytes=job)), fence, since, Duration(timeout) if timeout else None)

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
        os.close(self.descriptor)


def _unnamed_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
