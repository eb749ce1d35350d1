"""Record of what handlers did, in a file that no fault affects."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec


class Entry(NamedTuple):
    """Action of a handler. `at` is the monotonic clock, which all processes share."""

    event: str
    job: str
    key: str
    attempt: int
    fence: int
    pid: int
    at: float


_DECODE = msgspec.json.Decoder(Entry).decode


class Ledger:
    """Append-only file with a line per entry, opened for each: safe in threads and across forks.

    It has no locks, so that a process that is stopped or killed during a write blocks no other.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> "Ledger":
        """Create the file."""
        self.path.touch()
        return self

    def write(self, event: str, *, job: str, key: str, attempt: int, fence: int, pid: int) -> None:
        """Append an entry, which survives the process when this returns."""
        line = msgspec.json.encode(Entry(event, job, key, attempt, fence, pid, time.monotonic())) + b"\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            assert os.write(file, line) == len(line)  # one system call, so that lines do not mix
        finally:
            os.close(file)

    def entries(self, event: str | None = None, key: str | None = None) -> list[Entry]:
        """Return the entries in order of time."""
        lines = self.path.read_bytes().split(b"\n")[:-1]  # an incomplete last line is being written
        found = [_DECODE(line) for line in lines]
        selected = [each for each in found if event in (None, each.event) and key in (None, each.key)]
        return sorted(selected, key=lambda each: each.at)

    def count(self, event: str, key: str | None = None) -> int:
        """Count the entries of an event."""
        return len(self.entries(event, key))

    def per_key(self, event: str) -> Counter[str]:
        """Count the entries of an event by key."""
        return Counter(entry.key for entry in self.entries(event))
