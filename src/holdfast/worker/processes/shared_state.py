"""What a supervisor and a child must know of each other even if the other side does not answer.

The child notes which jobs it has begun and which processes it started, for the time when it is dead. A job under
suspicion that runs in a process of its own is noted by that process. The supervisor notes until when the lease can be
trusted, for a child that cannot listen: one whose event loop was blocked looks here before it believes that its lease
is gone.

A piece of shared memory with one cell a slot: writing it costs a handler next to nothing, and needs nobody to read it
unless the child dies.
"""

import mmap
import os
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from holdfast.model.ids import JobId
from holdfast.model.time import Duration, in_seconds

_CELL = struct.Struct("<16sIdq")  # job, fence (0: the cell is free), begin by the monotonic clock, timeout (0: none)
_DEADLINE = struct.Struct("<d")  # by the monotonic clock; comes first, so that it is read and written in one piece
_GROUP = struct.Struct("<i")  # the id of a group of processes (0: the cell is free)


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
        self._memory = mmap.mmap(descriptor, _size(cells))
        self._free = list(range(cells))
        self._free_groups = list(range(cells))

    @classmethod
    def create(cls, cells: int) -> "Board":
        """A new board with all cells free."""
        descriptor = os.memfd_create("holdfast-board") if hasattr(os, "memfd_create") else _unnamed_file()
        os.ftruncate(descriptor, _size(cells))
        return cls(descriptor, cells)

    @property
    def deadline(self) -> float:
        """Until when the lease can be trusted, by the monotonic clock."""
        moment: float = _DEADLINE.unpack_from(self._memory)[0]
        return moment

    @deadline.setter
    def deadline(self, moment: float) -> None:
        _DEADLINE.pack_into(self._memory, 0, moment)

    def begin(self, job: JobId, fence: int, since: float, timeout: Duration | None) -> int | None:
        """A handler starts: the cell it is noted in, if one is free."""
        if (cell := self.reserve()) is not None:
            _CELL.pack_into(self._memory, _cell_at(cell), job.bytes, fence, since, timeout or 0)
        return cell

    def reserve(self) -> int | None:
        """A cell for a handler that starts in another process, which notes it there: see `note`."""
        return self._free.pop() if self._free else None

    def end(self, cell: int) -> None:
        """The attempt is over, and that is recorded."""
        _CELL.pack_into(self._memory, _cell_at(cell), b"", 0, 0.0, 0)
        self._free.append(cell)

    def clear(self, cells: Iterable[int | None]) -> None:
        """The same for many, some of which may stand nowhere."""
        for cell in cells:
            if cell is not None:
                self.end(cell)

    def stop_timing(self, cell: int) -> None:
        """The handler has ended: however long its outcome takes to be recorded, it is not overdue."""
        job, fence, since, _ = _CELL.unpack_from(self._memory, _cell_at(cell))
        _CELL.pack_into(self._memory, _cell_at(cell), job, fence, since, 0)

    def begun(self) -> Iterator[Begun]:
        """The jobs whose handlers have begun and not ended."""
        for cell in range(self.cells):
            job, fence, since, timeout = _CELL.unpack_from(self._memory, _cell_at(cell))
            if fence:
                yield Begun(JobId(UUID(bytes=job)), fence, since, Duration(timeout) if timeout else None)

    def started(self, group: int) -> int:
        """A process was started as the leader of this group: the cell it is noted in."""
        cell = self._free_groups.pop()
        self._write_group(cell, group)
        return cell

    def ended(self, cell: int) -> None:
        """The group is no more."""
        self._write_group(cell, 0)
        self._free_groups.append(cell)

    def groups(self) -> list[int]:
        """The groups that are there."""
        each = (_GROUP.unpack_from(self._memory, self._group_at(cell))[0] for cell in range(self.cells))
        return [group for group in each if group]

    def _write_group(self, cell: int, group: int) -> None:
        _GROUP.pack_into(self._memory, self._group_at(cell), group)

    def _group_at(self, cell: int) -> int:
        return _cell_at(self.cells) + cell * _GROUP.size

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
        os.close(self.descriptor)


def note(descriptor: int, cell: int, job: JobId, fence: int) -> None:
    """A handler starts in this process, which has not the board in its memory, lest the handler write over it."""
    os.pwrite(descriptor, _CELL.pack(job.bytes, fence, time.monotonic(), 0), _cell_at(cell))


def _size(cells: int) -> int:
    return _cell_at(cells) + cells * _GROUP.size


def _cell_at(cell: int) -> int:
    return _DEADLINE.size + cell * _CELL.size


def _unnamed_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
