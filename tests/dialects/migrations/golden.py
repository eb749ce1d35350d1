"""Schema as a database reports it, in a form that does not depend on the server version.

After adding a migration, write the golden files and the checksums of the steps again, and review the diff:

    .venv/bin/python -m tests.dialects.migrations.golden
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.store.console import open_console
from tests.dialects.migrations import pins
from tests.support.databases import DATABASES, drop_all, migrate
from tests.support.servers import Missing, running
from tests.support.servers.process import scratch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.store.console import Console

FOLDER = Path(__file__).parent / "golden"

Schema = dict[str, dict[str, Any]]

_POSTGRES_COLUMNS = """
SELECT c.relname::text, c.relkind::text, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       pg_get_expr(d.adbin, d.adrelid), co.collname::text
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
LEFT JOIN pg_collation co ON co.oid = a.attcollation AND co.collname <> 'default'
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
  AND c.relname !~ '_[0-9]{8}$' ORDER BY c.relname, a.attnum
"""
_POSTGRES_INDEXES = """
SELECT i.indrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname !~ '_[0-9]{8}$' ORDER BY 1, 2
"""
_POSTGRES_OPTIONS = """
SELECT relname::text, array_to_string(reloptions, ', '), pg_get_partkeydef(oid) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname !~ '_[0-9]{8}$'
"""
_POSTGRES_COMMENTS = """
SELECT relname::text, obj_description(oid, 'pg_class') FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'v') AND relname !~ '_[0-9]{8}$'
"""
_MYSQL_COMMENTS = """
SELECT table_name, table_comment FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'
"""
_MYSQL_COLUMNS = """
SELECT c.table_name, t.table_type, c.column_name, c.column_type, c.is_nullable, c.column_default, c.collation_name
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE c.table_schema = DATABASE() ORDER BY c.table_name, c.ordinal_position
"""
_MYSQL_INDEXES = """
SELECT table_name, CONCAT(IF(non_unique, '', 'unique '), index_name, ' (',
  GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ', '), ')')
FROM information_schema.statistics WHERE table_schema = DATABASE()
GROUP BY table_name, non_unique, index_name ORDER BY table_name, index_name
"""
_SQLITE = "SELECT name, type, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name"


async def describe(url: str) -> Schema:
    """Return all tables with their columns and indexes, and all views with their columns."""
    console = await open_console(url)
    try:
        return await _READ[console.dialect](console)
    finally:
        await console.aclose()


def expected(dialect: str) -> Schema:
    """Return the schema that the newest version should have."""
    found: Schema = json.loads((FOLDER / f"{dialect}.json").read_text())
    return found


async def _postgres(console: Console) -> Schema:
    schema: Schema = {}
    kinds = {"r": "table", "p": "table", "v": "view", "S": "sequence"}
    for table, kind, name, kind_of_value, required, default, collation in await console.rows(_POSTGRES_COLUMNS):
        entry = schema.setdefault(table, {"kind": kinds[kind], "columns": []})
        if kinds[kind] == "view":
            entry["columns"].append(name)
        elif kinds[kind] == "table":
            entry["columns"].append(_column(name, kind_of_value, required, default, collation))
    for table, definition in await console.rows(_POSTGRES_INDEXES):
        schema[table].setdefault("indexes", []).append(definition.replace("public.", ""))
    for table, options, partitions in await console.rows(_POSTGRES_OPTIONS):
        schema[table] |= {name: value for name, value in (("options", options), ("by", partitions)) if value}
    return await _with_comments(schema, console, _POSTGRES_COMMENTS)


async def _mysql(console: Console) -> Schema:
    schema: Schema = {}
    for table, kind, name, kind_of_value, nullable, default, collation in await console.rows(_MYSQL_COLUMNS):
        if kind == "VIEW":
            schema.setdefault(table, {"kind": "view", "columns": []})["columns"].append(name)
            continue
        # MariaDB reports integer widths and NULL defaults; MySQL reports neither.
        plain = re.sub(r"int\(\d+\)", "int", kind_of_value)
        given = None if default == "NULL" else default
        # The table of applied migrations has the server's default collation.
        compared = None if table == "holdfast_schema" else collation
        columns = schema.setdefault(table, {"kind": "table", "columns": []})["columns"]
        columns.append(_column(name, plain, nullable == "NO", given and given.lower().removesuffix("()"), compared))
    for table, definition in await console.rows(_MYSQL_INDEXES):
        schema[table].setdefault("indexes", []).append(definition)
    return await _with_comments(schema, console, _MYSQL_COMMENTS)


async def _with_comments(schema: Schema, console: Console, query: str) -> Schema:
    for table, comment in await console.rows(query):
        if comment:
            schema[table]["comment"] = comment
    return schema


async def _sqlite(console: Console) -> Schema:
    rows = await console.rows(_SQLITE)
    return {name: {"kind": kind, "of": table, "sql": " ".join(sql.split())} for name, kind, table, sql in rows}


_READ = {"postgres": _postgres, "mysql": _mysql, "sqlite": _sqlite}


def _column(name: str, kind: str, required: bool, default: str | None, collation: str | None) -> str:
    parts: Iterable[str | None] = (
        name,
        kind,
        f"collate {collation}" if collation else None,
        "not null" if required else None,
        f"default {default}" if default else None,
    )
    return " ".join(part for part in parts if part)


async def _write(dialect: str, url: str) -> None:
    await migrate(url)
    text = json.dumps(await describe(url), indent=2, sort_keys=True, ensure_ascii=False)
    (FOLDER / f"{dialect}.json").write_text(f"{text}\n")


async def _write_all() -> None:
    FOLDER.mkdir(exist_ok=True)
    pins.write()
    prefix = f"holdfast_golden_{secrets.token_hex(4)}_"
    with scratch() as folder, running(DATABASES) as servers:
        await _write("sqlite", f"sqlite:///{folder / 'golden.db'}")
        for name, server in servers.items():
            if isinstance(server, Missing):
                sys.exit(f"{name}: {server}")
            try:
                async with DATABASES[name](server.url, prefix + name) as database:
                    await _write(name, database.url)
            finally:
                await drop_all(name, server.url, prefix)


if __name__ == "__main__":
    asyncio.run(_write_all())
