"""What handlers really did, in a file that no fault touches: written before a handler goes on."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec


class Entry(NamedTuple):
    """One thing a handler did. `at` is the machine's monotonic clock, which all its processes share."""

    event: str
    job: str
    key: str
    attempt: int
    fence: int
    pid: int
    at: float


_DECODE = msgspec.json.Decoder(Entry).decode


class Ledger:
    """A file that only grows, a line for each entry, opened anew for it: safe in threads, in children, across forks.

    No locks: a process that was frozen or killed while it wrote keeps nobody else from writing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> "Ledger":
        """Make the file."""
        self.path.touch()
        return self

    def write(self, event: str, *, job: str, key: str, attempt: int, fence: int, pid: int) -> None:
        """It outlives the process when this returns."""
        line = msgspec.json.encode(Entry(event, job, key, attempt, fence, pid, time.monotonic())) + b"\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            assert os.write(file, line) == len(line)  # one call: lines of others come before it or after it
        finally:
            os.close(file)

    def entries(self, event: str | None = None, key: str | None = None) -> list[Entry]:
        """What was written, in the order of time."""
        lines = self.path.read_bytes().split(b"\n")[:-1]  # what has no end is being written
        found = [_DECODE(line) for line in lines]
        wanted = [each for each in found if event in (None, each.event) and key in (None, each.key)]
        return sorted(wanted, key=lambda each: each.at)

    def count(self, event: str, key: str | None = None) -> int:
        """How often."""
        return len(self.entries(event, key))

    def per_key(self, event: str) -> Counter[str]:
        """How often for each key."""
        return Counter(entry.key for entry in self.entries(event))
