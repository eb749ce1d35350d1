"""Statements of SQLite, with variants that write many rows at a time."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from holdfast.store.statements import Statement, Statements

CLOCK = "(CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000)"
"""Clock of this machine in microseconds, with a resolution of a millisecond."""

_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b")
_VALUES = re.compile(r"VALUES (\([?,\s]*\))")
_SIZES = (128, 16, 1)
"""Numbers of rows per statement: few sizes, so that each text is prepared once."""


class BatchedStatements:
    """All statements, by name."""

    def __init__(self, clock: str | None) -> None:
        self._statements = Statements("sqlite", placeholder=lambda *_: "?", clock=clock or CLOCK, repeat_positions=True)
        self._writing = frozenset(name for name in self._statements if _WRITES.search(self._statements[name].text))
        self._repeated = {
            (name, size): _repeat(self._statements[name].text, size)
            for name in self._statements
            for size in _SIZES
            if _VALUES.search(self._statements[name].text)
        }

    def __getitem__(self, name: str) -> Statement:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def writes(self, name: str) -> bool:
        """Return True if a statement needs the write lock."""
        return name in self._writing

    def chunks(self, name: str, rows: Sequence[Sequence[object]]) -> Iterator[tuple[str, list[object]]]:
        """Yield texts and values that together run a statement for all rows."""
        start = 0
        for size in _SIZES:
            text = self._repeated[name, size]
            while len(rows) - start >= size:
                yield text, [value for row in rows[start : start + size] for value in row]
                start += size


@cache
def load_statements(clock: str | None) -> BatchedStatements:
    """Return the statements for a clock, loaded once per process."""
    return BatchedStatements(clock)


def _repeat(text: str, times: int) -> str:
    return _VALUES.sub(lambda match: "VALUES " + ", ".join([match[1]] * times), text)
