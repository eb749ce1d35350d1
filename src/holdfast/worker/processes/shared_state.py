"""Memory shared by supervisor and worker, readable even if the other side is dead.

The worker records its running jobs and the process groups it started, so that the supervisor can report and kill them
after a crash. It also gives signs of life, so that the supervisor can replace a process that no longer runs, and names
the handler that blocks its event loop. A suspect job that runs in its own process is recorded by that process. The
supervisor records the end of the lease, so that a worker whose event loop was blocked can check it before it assumes
that the lease has expired.

The memory has one entry per slot. A write costs a handler almost nothing.
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

_ENTRY = struct.Struct("<16sIdq")  # job, fence (0: the entry is free), start by the monotonic clock, timeout (0: none)
_TIME = struct.Struct("<d")  # by the monotonic clock; aligned, so that a reader never sees half of a write
_BLOCKER = struct.Struct("128s")  # job type of the handler that blocks the event loop
_DEADLINE_OFFSET, _ALIVE_OFFSET, _BLOCKED_OFFSET, _BLOCKER_OFFSET = 0, _TIME.size, 2 * _TIME.size, 3 * _TIME.size
_HEADER_BYTES = _BLOCKER_OFFSET + _BLOCKER.size
_GROUP = struct.Struct("<i")  # process group id (0: the entry is free)


class RunningEntry(NamedTuple):
    """Job whose handler has started and whose outcome is not recorded."""

    job: JobId
    fence: int
    since: float
    timeout: Duration | None

    def overdue(self, now: float) -> float:
        """Return the seconds by which the job exceeds its timeout."""
        return 0.0 if self.timeout is None else max(0.0, now - self.since - in_seconds(self.timeout))


class SharedState:
    """Entries in an anonymous file that supervisor and worker process map into memory."""

    def __init__(self, descriptor: int, entries: int) -> None:
        self.descriptor = descriptor
        self.entries = entries
        self._memory = mmap.mmap(descriptor, _size(entries))
        self._free = list(range(entries))
        self._free_groups = list(range(entries))

    @classmethod
    def create(cls, entries: int) -> "SharedState":
        """Create a file in which all entries are free."""
        descriptor = os.memfd_create("holdfast-worker-state") if hasattr(os, "memfd_create") else _unnamed_file()
        os.ftruncate(descriptor, _size(entries))
        return cls(descriptor, entries)

    @property
    def deadline(self) -> float:
        """Time until which the lease is valid, by the monotonic clock."""
        return self._read_time(_DEADLINE_OFFSET)

    @deadline.setter
    def deadline(self, moment: float) -> None:
        _TIME.pack_into(self._memory, _DEADLINE_OFFSET, moment)

    @property
    def alive_at(self) -> float:
        """Time of the worker's last sign of life, by the monotonic clock; 0 before the first."""
        return self._read_time(_ALIVE_OFFSET)

    @alive_at.setter
    def alive_at(self, moment: float) -> None:
        _TIME.pack_into(self._memory, _ALIVE_OFFSET, moment)

    def record_blocked(self, since: float, blocker: str) -> None:
        """Record that the event loop is blocked, since when, and the job type of the handler."""
        self.clear_blocked()  # a reader takes the name only if the time is set before and after
        _BLOCKER.pack_into(self._memory, _BLOCKER_OFFSET, blocker.encode())
        _TIME.pack_into(self._memory, _BLOCKED_OFFSET, since)

    def clear_blocked(self) -> None:
        """Record that the event loop runs."""
        _TIME.pack_into(self._memory, _BLOCKED_OFFSET, 0.0)

    def blocked(self) -> tuple[float, str] | None:
        """Return since when the event loop is blocked, and by which job type; None if it runs."""
        since = self._read_time(_BLOCKED_OFFSET)
        (blocker,) = _BLOCKER.unpack_from(self._memory, _BLOCKER_OFFSET)
        if not since or since != self._read_time(_BLOCKED_OFFSET):
            return None
        return since, blocker.rstrip(b"\0").decode(errors="replace")

    def begin(self, job: JobId, fence: int, since: float, timeout: Duration | None) -> int | None:
        """Record a started handler; return its entry, or None if none is free."""
        if (entry := self.reserve()) is not None:
            _ENTRY.pack_into(self._memory, _entry_offset(entry), job.bytes, fence, since, timeout or 0)
        return entry

    def reserve(self) -> int | None:
        """Reserve an entry for a handler in another process, which fills it with `record_start`."""
        return self._free.pop() if self._free else None

    def end(self, entry: int) -> None:
        """Free an entry because the outcome of the attempt is recorded."""
        _ENTRY.pack_into(self._memory, _entry_offset(entry), b"", 0, 0.0, 0)
        self._free.append(entry)

    def clear(self, entries: Iterable[int | None]) -> None:
        """Free several entries; None means a job without an entry."""
        for entry in entries:
            if entry is not None:
                self.end(entry)

    def stop_timing(self, entry: int) -> None:
        """Clear the timeout of an entry whose handler has ended but is not reported yet."""
        job, fence, since, _ = _ENTRY.unpack_from(self._memory, _entry_offset(entry))
        _ENTRY.pack_into(self._memory, _entry_offset(entry), job, fence, since, 0)

    def running(self) -> Iterator[RunningEntry]:
        """Iterate over the entries in use."""
        for entry in range(self.entries):
            job, fence, since, timeout = _ENTRY.unpack_from(self._memory, _entry_offset(entry))
            if fence:
                yield RunningEntry(JobId(UUID(bytes=job)), fence, since, Duration(timeout) if timeout else None)

    def add_group(self, group: int) -> int:
        """Record a process group that was started; return its entry."""
        entry = self._free_groups.pop()
        self._write_group(entry, group)
        return entry

    def remove_group(self, entry: int) -> None:
        """Free the entry of a process group that has ended."""
        self._write_group(entry, 0)
        self._free_groups.append(entry)

    def groups(self) -> list[int]:
        """Return the recorded process groups."""
        recorded = (_GROUP.unpack_from(self._memory, self._group_offset(entry))[0] for entry in range(self.entries))
        return [group for group in recorded if group]

    def _read_time(self, offset: int) -> float:
        moment: float = _TIME.unpack_from(self._memory, offset)[0]
        return moment

    def _write_group(self, entry: int, group: int) -> None:
        _GROUP.pack_into(self._memory, self._group_offset(entry), group)

    def _group_offset(self, entry: int) -> int:
        return _entry_offset(self.entries) + entry * _GROUP.size

    def close(self) -> None:
        """Unmap the memory and close the file."""
        self._memory.close()
        os.close(self.descriptor)


def record_start(descriptor: int, entry: int, job: JobId, fence: int) -> None:
    """Record a started handler by a file write.

    A job process does not map the memory, so that its handler cannot corrupt it.
    """
    os.pwrite(descriptor, _ENTRY.pack(job.bytes, fence, time.monotonic(), 0), _entry_offset(entry))


def _size(entries: int) -> int:
    return _entry_offset(entries) + entries * _GROUP.size


def _entry_offset(entry: int) -> int:
    return _HEADER_BYTES + entry * _ENTRY.size


def _unnamed_file() -> int:
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
