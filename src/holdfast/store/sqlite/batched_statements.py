"""The statements of SQLite, also with their row of values repeated, to move many rows in one step."""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from holdfast.store.statements import Statement, Statements

CLOCK = "(CAST(unixepoch('subsec') * 1000 + 0.5 AS INTEGER) * 1000)"
"""This machine's clock, to the millisecond; the same all through one step of a statement."""

_WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE)\b")
_VALUES = re.compile(r"VALUES (\([?,\s]*\))")
_SIZES = (128, 16, 1)
"""To how many rows a statement is repeated: few sizes, so that each is prepared once and for all."""


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
        """Whether a statement needs the write lock."""
        return name in self._writing

    def chunks(self, name: str, rows: Sequence[Sequence[object]]) -> Iterator[tuple[str, list[object]]]:
        """Texts and values that together run a statement for all rows, many rows at a time."""
        start = 0
        for size in _SIZES:
            text = self._repeated[name, size]
            while len(rows) - start >= size:
                yield text, [value for row in rows[start : start + size] for value in row]
                start += size


@cache
def load_statements(clock: str | None) -> BatchedStatements:
    """The statements on that clock: made once, however many stores a process opens."""
    return BatchedStatements(clock)


def _repeat(text: str, times: int) -> str:
    return _VALUES.sub(lambda match: "VALUES " + ", ".join([match[1]] * times), text)
