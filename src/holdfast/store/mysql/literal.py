"""Values as SQL text: statements go out as text, several in one message, which prepared statements cannot.

Bytes are written in hexadecimal, and so is any text that is not plain: what a value contains can never be read as SQL,
whatever the server's modes and character sets. It is also quicker than escaping.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import compress
from typing import Any
from uuid import UUID

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@ -]*").fullmatch


class Sql(str):
    """A piece of SQL that was put together by this module; goes into a statement as it stands."""

    __slots__ = ()


def literal(value: Any) -> str:
    """A value as it is written in a statement."""
    return _WRITERS[type(value)](value)


def values(rows: Iterable[Sequence[Any]]) -> Sql:
    """Rows for an INSERT: `(…),(…)`."""
    return Sql(",".join([f"({_items(row)})" for row in rows]))


def items(members: Iterable[Any]) -> Sql:
    """Values for an IN: `(…, …)`."""
    return Sql(f"({_items(members)})")


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, as_values: bool = False) -> Sql:
    """Rows as a derived table with these columns. Values in which all rows agree are written once.

    `as_values`: written as MariaDB likes it best; elsewhere a row constructor has another syntax, or none.
    """
    if len(rows) == 1:
        return Sql(f"(SELECT {_named(columns, rows[0])})")
    # Most often the first two tell; and to hash what has no quick hash, like an id, would cost more than all the rest.
    differs = [values[0] != values[1] or len(set(values)) > 1 for values in zip(*rows, strict=True)]
    if all(differs) or not any(differs):
        return _rows(columns, rows, as_values=as_values)
    names = list(compress(columns, differs))
    varied = _rows(names, [tuple(compress(row, differs)) for row in rows], as_values=as_values)
    same = [not each for each in differs]
    shared = _named(list(compress(columns, same)), list(compress(rows[0], same)))
    return Sql(f"(SELECT {','.join(names)},{shared} FROM {varied} AS v)")  # noqa: S608 - of literals only


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, as_values: bool) -> Sql:
    first = f"SELECT {_named(columns, rows[0])}"
    rest = list(map(",".join, zip(*map(_column, zip(*rows[1:], strict=True)), strict=True)))
    if as_values:
        return Sql(f"({first} UNION ALL VALUES ({'),('.join(rest)}))")
    return Sql(f"({first} UNION ALL SELECT {' UNION ALL SELECT '.join(rest)})")


def _column(values: Sequence[Any]) -> Iterable[str]:
    """Values of one column, written. Mostly they are all of one type."""
    kinds = set(map(type, values))
    return map(_WRITERS[kinds.pop()], values) if len(kinds) == 1 else map(literal, values)


def _named(columns: Sequence[str], row: Sequence[Any]) -> str:
    return ",".join([f"{literal(value)} AS {column}" for column, value in zip(columns, row, strict=True)])


def _items(members: Iterable[Any]) -> str:
    return ",".join([_WRITERS[type(member)](member) for member in members])


def _text(value: str) -> str:
    # Both forms with the same introducer, so that they have the same collation where they meet in one column.
    # A lone surrogate, from a name of a file for instance, becomes "?": no database of ours stores it.
    return f"_utf8mb4'{value}'" if _PLAIN(value) else f"_utf8mb4 x'{value.encode('utf-8', 'replace').hex()}'"


_WRITERS: dict[type, Callable[[Any], str]] = {
    int: int.__repr__,
    str: _text,
    bytes: lambda value: f"x'{value.hex()}'",
    UUID: lambda value: f"x'{value.hex}'",
    type(None): lambda _: "NULL",
    Sql: str,
}
