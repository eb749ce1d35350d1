"""Indexes that the schema should have, and statements that recreate them."""

import re
from typing import NamedTuple

from holdfast.store.migrate import migrations

_CREATE_INDEX = re.compile(
    r"CREATE\s+(UNIQUE\s+)?INDEX\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)\s+(ON\s+(\w+)[^;]*)", re.IGNORECASE
)
_CREATE_TABLE = re.compile(r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\w+)\s*\((.*?)\n\)", re.IGNORECASE | re.DOTALL)
_KEY = re.compile(r"^\s*(UNIQUE\s+)?KEY\s+(\w+)\s+(\(.*?\))\s*,?\s*$", re.IGNORECASE | re.MULTILINE)
_ADD_KEY = re.compile(r"ALTER\s+TABLE\s+(\w+)\s+ADD\s+(UNIQUE\s+)?KEY\s+(\w+)\s+(\([^)]*\))", re.IGNORECASE)
_DROP_INDEX = re.compile(r"DROP\s+(?:INDEX|KEY)\s+(?:IF\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
_DROP_TABLE = re.compile(r"DROP\s+TABLE\s+(?:IF\s+EXISTS\s+)?(\w+)", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*")

PARTITIONED = frozenset({"holdfast_history"})
"""PostgreSQL tables whose indexes cannot be created concurrently."""


class Index(NamedTuple):
    """Index of the schema, and a statement that creates it on a table with rows."""

    name: str
    table: str
    statement: str


def expected(dialect: str) -> list[Index]:
    """Return the indexes of the current schema, except those of primary keys."""
    indexes: dict[str, Index] = {}
    for migration in migrations(dialect):
        text = _COMMENT.sub("", migration.sql)
        for table in _DROP_TABLE.findall(text):
            indexes = {name: index for name, index in indexes.items() if index.table != table}
        for name in _DROP_INDEX.findall(text):
            indexes.pop(name, None)
        for index in _mysql(text) if dialect == "mysql" else _standard(text, dialect):
            indexes[index.name] = index
    return list(indexes.values())


def _standard(text: str, dialect: str) -> list[Index]:
    indexes = []
    for unique, name, rest, table in _CREATE_INDEX.findall(text):
        concurrently = "CONCURRENTLY " if dialect == "postgres" and table not in PARTITIONED else ""
        on = " ".join(rest.split())
        indexes.append(Index(name, table, f"CREATE {unique}INDEX {concurrently}IF NOT EXISTS {name} {on}"))
    return indexes


def _mysql(text: str) -> list[Index]:
    indexes = []
    for table, body in _CREATE_TABLE.findall(text):
        for unique, name, columns in _KEY.findall(body):
            indexes.append(Index(name, table, f"ALTER TABLE {table} ADD {unique}KEY {name} {columns}"))
    for table, unique, name, columns in _ADD_KEY.findall(text):
        indexes.append(Index(name, table, f"ALTER TABLE {table} ADD {unique}KEY {name} {columns}"))
    return [*indexes, *_standard(text, "mysql")]
