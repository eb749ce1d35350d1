"""Unfinished rows of a source system's table, read with one statement on one snapshot."""

import re
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast.config import shown_url
from holdfast.errors import HoldfastError, Misconfigured, Unavailable
from holdfast.store.console import Console, dialect_of, is_new_file, open_console

Row = Mapping[str, Any]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
_COLUMNS = {
    "postgres": (
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name = '{}' ORDER BY ordinal_position"
    ),
    "mysql": (
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = '{}' ORDER BY ordinal_position"
    ),
    "sqlite": "SELECT name FROM pragma_table_info('{}')",
}
_NOW = {
    "postgres": "SELECT now()",
    "mysql": "SELECT UTC_TIMESTAMP(6)",
    "sqlite": "SELECT strftime('%Y-%m-%d %H:%M:%f', 'now')",
}
_STANDARD = """\
SELECT {columns} FROM "{table}" WHERE lower(coalesce(CAST("status" AS text), '')) NOT IN ({words})"""
_UNFINISHED = {
    "postgres": _STANDARD,
    "mysql": "SELECT {columns} FROM `{table}` WHERE lower(coalesce(CAST(`status` AS char), '')) NOT IN ({words})",
    "sqlite": _STANDARD,
}


class SourceTable:
    """Table of a source system."""

    def __init__(self, console: Console, name: str, columns: Collection[str]) -> None:
        self._console = console
        self.name = name
        self.columns = columns

    async def now(self) -> Any:
        """Return the time of the source database, which decides whether a lease has expired."""
        return (await self._console.rows(_NOW[self._console.dialect]))[0][0]

    async def unfinished(self, finished: Collection[str]) -> list[Row]:
        """Return the rows whose status is none of these words, as they are stored."""
        statement = _select(self._console.dialect, self.name, self.columns, finished)
        try:
            rows = await self._console.rows(statement)
        except Exception as error:  # noqa: BLE001 - each driver has its own errors
            raise Misconfigured(
                f"--from: the table {self.name!r} cannot be read ({error}): grant the right to read it"
            ) from None
        return [dict(zip(self.columns, row, strict=True)) for row in rows]


def _select(dialect: str, table: str, columns: Collection[str], finished: Collection[str]) -> str:
    """Return the statement.

    The name of the table was checked, and those of the columns come from the catalogue.
    """
    quote = "`" if dialect == "mysql" else '"'
    names = ", ".join(f"{quote}{column}{quote}" for column in columns)
    words = ", ".join(f"'{word}'" for word in sorted(finished))
    return _UNFINISHED[dialect].format(columns=names, table=table, words=words)


@asynccontextmanager
async def open_table(url: str, name: str) -> AsyncIterator[SourceTable]:
    """Open a table for reading. Raises `Misconfigured` or `Unavailable`."""
    if not _NAME.fullmatch(name):
        raise Misconfigured(f"--table: {name[:40]!r} is not the name of a table: use letters, digits and _")
    if dialect_of(url) == "sqlite" and is_new_file(url):
        raise Misconfigured(f"--from: there is no file {shown_url(url)}: name an existing database")
    try:
        console = await open_console(url)
    except HoldfastError:
        raise
    except Exception as error:  # noqa: BLE001 - each driver has its own errors
        raise Unavailable(f"--from: cannot connect to {shown_url(url)} ({error})") from None
    try:
        if console.dialect == "mysql":  # otherwise TIMESTAMP columns have the server's time zone
            await console.rows("SET time_zone = '+00:00'")
        columns = [str(row[0]) for row in await console.rows(_COLUMNS[console.dialect].format(name))]
        if not columns:
            raise Misconfigured(f"--from: {shown_url(url)} has no table {name!r}: name the right one with --table")
        odd = next((column for column in columns if not _NAME.fullmatch(column)), None)
        if odd is not None:
            raise Misconfigured(f"--from: the column {odd[:40]!r} of {name!r} has an unusual name: rename it")
        yield SourceTable(console, name, columns)
    finally:
        await console.aclose()
