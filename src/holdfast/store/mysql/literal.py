"""SQL literals.

Several statements in one message must be text, because prepared statements cannot be combined. Bytes and any text that
is not plain ASCII are written in hexadecimal, so that a value can never be read as SQL, whatever the server's modes and
character sets. This is also faster than escaping.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any
from uuid import UUID

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@ -]*").fullmatch


class Sql(str):
    """SQL text that this module built; it is inserted into statements unchanged."""

    __slots__ = ()


def literal(value: Any) -> str:
    """Return a value as an SQL literal."""
    return _WRITERS[type(value)](value)


def values(rows: Iterable[Sequence[Any]]) -> Sql:
    """Return the rows of an INSERT: `(…),(…)`."""
    return Sql(",".join([f"({_items(row)})" for row in rows]))


def items(members: Iterable[Any]) -> Sql:
    """Return the values of an IN: `(…, …)`."""
    return Sql(f"({_items(members)})")


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, as_values: bool = False) -> Sql:
    """Return rows as a derived table; a value that is equal in all rows is written once.

    Args:
        columns: Names of the columns.
        rows: Rows of the table, at least one.
        as_values: Use the VALUES syntax of MariaDB, which is faster there.
    """
    if len(rows) == 1:
        return Sql(f"(SELECT {_named(columns, rows[0])})")
    # Usually the first two rows differ; hashing all values, such as ids, would cost more than the rest.
    differs = [values[0] != values[1] or len(set(values)) > 1 for values in zip(*rows, strict=True)]
    if all(differs) or not any(differs):
        return _rows(columns, rows, as_values=as_values)
    names = list(compress(columns, differs))
    varied = _rows(names, [tuple(compress(row, differs)) for row in rows], as_values=as_values)
    same = [not varies for varies in differs]
    shared = _named(list(compress(columns, same)), list(compress(rows[0], same)))
    return Sql(f"(SELECT {','.join(names)},{shared} FROM {varied} AS v)")  # noqa: S608 - consists of literals only


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, as_values: bool) -> Sql:
    first = f"SELECT {_named(columns, rows[0])}"
    rest = list(map(",".join, zip(*map(_column, zip(*rows[1:], strict=True)), strict=True)))
    if as_values:
        return Sql(f"({first} UNION ALL VALUES ({'),('.join(rest)}))")
    return Sql(f"({first} UNION ALL SELECT {' UNION ALL SELECT '.join(rest)})")


def _column(values: Sequence[Any]) -> Iterable[str]:
    """Return the literals of one column, whose values usually have one type."""
    kinds = set(map(type, values))
    return map(_WRITERS[kinds.pop()], values) if len(kinds) == 1 else map(literal, values)


def _named(columns: Sequence[str], row: Sequence[Any]) -> str:
    return ",".join([f"{literal(value)} AS {column}" for column, value in zip(columns, row, strict=True)])


def _items(members: Iterable[Any]) -> str:
    return ",".join([_WRITERS[type(member)](member) for member in members])


def _text(value: str) -> str:
    # Both forms have the same introducer, so that they have the same collation within one column.
    # A lone surrogate, for example from a file name, becomes "?", because the database cannot store it.
    return f"_utf8mb4'{value}'" if _PLAIN(value) else f"_utf8mb4 x'{value.encode('utf-8', 'replace').hex()}'"


_WRITERS: dict[type, Callable[[Any], str]] = {
    int: int.__repr__,
    str: _text,
    bytes: lambda value: f"x'{value.hex()}'",
    UUID: lambda value: f"x'{value.hex}'",
    type(None): lambda _: "NULL",
    Sql: str,
}
