"""What handlers really did, in a file that no fault touches: written before a handler goes on."""

import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Entry(NamedTuple):
    """One thing a handler did. `at` is the machine's monotonic clock, which all its processes share."""

    event: str
    job: str
    key: str
    attempt: int
    fence: int
    pid: int
    at: float


class Ledger:
    """An SQLite file of its own, opened anew for each entry: safe in threads, in children, across forks."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> "Ledger":
        """Make the file."""
        with self._open() as db:
            db.execute(
                "CREATE TABLE entry "
                "(event TEXT, job TEXT, key TEXT, attempt INTEGER, fence INTEGER, pid INTEGER, at REAL)"
            )
        return self

    def write(self, event: str, *, job: str, key: str, attempt: int, fence: int, pid: int) -> None:
        """Durable when this returns."""
        with self._open() as db:
            db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)",
                       (event, job, key, attempt, fence, pid, time.monotonic()))  # fmt: skip

    def entries(self, event: str | None = None, key: str | None = None) -> list[Entry]:
        """What was written, in the order of time."""
        with self._open() as db:
            rows = db.execute(
                "SELECT * FROM entry WHERE (?1 IS NULL OR event = ?1) AND (?2 IS NULL OR key = ?2) ORDER BY at",
                (event, key),
            )
            return [Entry(*row) for row in rows]

    def count(self, event: str, key: str | None = None) -> int:
        """How often."""
        return len(self.entries(event, key))

    def per_key(self, event: str) -> Counter[str]:
        """How often for each key."""
        return Counter(entry.key for entry in self.entries(event))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = OFF")  # processes are killed here, the machine is not
            yield db
        finally:
            db.close()
