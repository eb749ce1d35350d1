"""Which indexes the schema has, read from its steps, and how one that is missing is made again."""

import re
from typing import NamedTuple

from holdfast.store.migrate import migrations

_MADE = re.compile(r"CREATE\s+(UNIQUE\s+)?INDEX\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)\s+(ON\s+(\w+)[^;]*)", re.IGNORECASE)
_TABLE = re.compile(r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)\s*\((.*?)\n\)", re.IGNORECASE | re.DOTALL)
_KEY = re.compile(r"^\s*(UNIQUE\s+)?KEY\s+(\w+)\s+(\(.*?\))\s*,?\s*$", re.IGNORECASE | re.MULTILINE)
_ADDED = re.compile(r"ALTER\s+TABLE\s+(\w+)\s+ADD\s+(UNIQUE\s+)?KEY\s+(\w+)\s+(\([^)]*\))", re.IGNORECASE)
_DROPPED = re.compile(r"DROP\s+(?:INDEX|KEY)\s+(?:IF\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
_NO_TABLE = re.compile(r"DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*")

PARTITIONED = frozenset({"holdfast_history"})
"""Tables of PostgreSQL whose indexes cannot be made while others write."""


class Index(NamedTuple):
    """An index that the schema has, and the statement that makes it where there are rows already."""

    name: str
    table: str
    statement: str


def expected(dialect: str) -> list[Index]:
    """The indexes of this version's schema, but for those of primary keys."""
    found: dict[str, Index] = {}
    for step in migrations(dialect):
        text = _COMMENT.sub("", step.sql)
        for gone in _NO_TABLE.findall(text):
            found = {name: each for name, each in found.items() if each.table != gone}
        for gone in _DROPPED.findall(text):
            found.pop(gone, None)
        for each in _mysql(text) if dialect == "mysql" else _standard(text, dialect):
            found[each.name] = each
    return list(found.values())


def _standard(text: str, dialect: str) -> list[Index]:
    indexes = []
    for unique, name, rest, table in _MADE.findall(text):
        beside = "CONCURRENTLY " if dialect == "postgres" and table not in PARTITIONED else ""
        on = " ".join(rest.split())
        indexes.append(Index(name, table, f"CREATE {unique}INDEX {beside}IF NOT EXISTS {name} {on}"))
    return indexes


def _mysql(text: str) -> list[Index]:
    indexes = []
    for table, body in _TABLE.findall(text):
        for unique, name, columns in _KEY.findall(body):
            indexes.append(Index(name, table, f"ALTER TABLE {table} ADD {unique}KEY {name} {columns}"))
    for table, unique, name, columns in _ADDED.findall(text):
        indexes.append(Index(name, table, f"ALTER TABLE {table} ADD {unique}KEY {name} {columns}"))
    return [*indexes, *_standard(text, "mysql")]
