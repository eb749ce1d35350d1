"""Generate the wire types of the Go and TypeScript clients: `.venv/bin/python tools/client_types.py`.

The types come from the OpenAPI description and cover the operations that the clients use. The files are committed;
`tests/e2e/clients` compares them with the description.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from holdfast.api.openapi.document import describe  # noqa: E402 - the tools need the path set above
from holdfast.api.routes import ALL  # noqa: E402
from tools.dashboard_types import declare, reachable, referenced, request_schemas  # noqa: E402

GO = ROOT / "clients" / "go" / "wire" / "types.gen.go"
TYPESCRIPT = ROOT / "clients" / "typescript" / "src" / "wire.gen.ts"
PATHS = (
    "/v1/jobs",
    "/v1/jobs/batch",
    "/v1/jobs/{id}",
    "/v1/jobs/{id}/cancel",
    "/v1/jobs/{id}/retry",
    "/v1/leases",
    "/v1/leases/renew",
    "/v1/leases/settle",
    "/v1/leases/lost",
    "/v1/leases/held",
    "/v1/leases/depart",
    "/v1/leases/steps",
    "/v1/leases/progress",
)
"""Operations that the clients use."""

_NOTE = "Generated from the OpenAPI description by tools/client_types.py"
_INITIALISMS = {"id": "ID", "url": "URL", "pid": "PID"}
_TIMES = re.compile(r"(_at|_until)$|^deadline$")
"""Fields of responses that hold a time."""


def main() -> None:
    """Write both files."""
    for path, text in generate().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")


def generate() -> dict[Path, str]:
    """Return the content of each generated file."""
    description = describe(ALL, "")
    schemas = description["components"]["schemas"]
    partial = request_schemas(description)
    used = {name: schemas[name] for name in sorted(_used(description))}
    return {GO: _go(used, partial), TYPESCRIPT: _typescript(used)}


def _used(description: dict[str, Any]) -> set[str]:
    """Return the names of the schemas that the operations need, directly or through others."""
    names = [name for path in PATHS for name in referenced(description["paths"][path])]
    return reachable(["Problem", *names], description)


def _typescript(schemas: dict[str, Any]) -> str:
    head = f"// {_NOTE}. Do not edit.\n\n/** Any JSON value. */\n"
    head += "export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };\n"
    return "\n".join([head, *(declare(name, each) for name, each in schemas.items())])


def _go(schemas: dict[str, Any], partial: set[str]) -> str:
    blocks = [_go_declaration(name, schema, schemas, partial=name in partial) for name, schema in schemas.items()]
    imports = [name for name in ("encoding/json", "time") if f"{name.rpartition('/')[2]}." in "".join(blocks)]
    head = [f"// Code {_NOTE[0].lower()}{_NOTE[1:]}. DO NOT EDIT.\n", _PACKAGE, "package wire\n"]
    return "\n".join([*head, "import (", *(f'\t"{name}"' for name in imports), ")\n", *blocks])


_PACKAGE = "// Package wire has the requests and responses of the HTTP API."


def _go_declaration(name: str, schema: dict[str, Any], schemas: dict[str, Any], *, partial: bool) -> str:
    text = _words(schema.get("description") or f"Part of the API: {name}.")
    comment = f"// {name}: {text[0].lower()}{text[1:]}"
    if "properties" not in schema:
        return f"{comment}\ntype {name} = {_go_type(schema, schemas)}\n"
    rows = []
    for field, of in schema["properties"].items():
        kind = _go_type(of, schemas, "" if partial else field)
        optional = partial and field not in schema.get("required", ())
        if (optional or _nullable(of)) and not kind.startswith(("[]", "map[", "json.", "any", "*")):
            kind = f"*{kind}"
        tag = f'`json:"{field}{",omitzero" if optional else ""}"`'
        rows.append((_words(of.get("description", "")), _go_name(field), kind, tag))
    return f"{comment}\ntype {name} struct {{\n{_aligned(rows)}}}\n"


def _aligned(rows: list[tuple[str, str, str, str]]) -> str:
    """Return the fields in the columns of gofmt, which aligns the fields between two comments."""
    lines: list[str] = []
    while rows:
        end = next((index for index, row in enumerate(rows) if index and row[0]), len(rows))
        group, rows = rows[:end], rows[end:]
        if group[0][0]:
            lines.append(f"\t// {group[0][0]}")
        name_width, type_width = (max(len(row[column]) for row in group) for column in (1, 2))
        lines += [f"\t{name:{name_width}} {kind:{type_width}} {tag}" for _, name, kind, tag in group]
    return "".join(f"{line}\n" for line in lines)


def _go_type(schema: dict[str, Any], schemas: dict[str, Any], field: str = "") -> str:
    """Return the Go type of a schema, without regard to null. Durations, which may be texts, are sent as seconds."""
    if "$ref" in schema:
        name = str(schema["$ref"].rpartition("/")[2])
        return name if "properties" in schemas[name] else _go_type(schemas[name], schemas, field)
    kinds = _kinds(schema)
    if len(kinds) > 1:
        return "float64" if {kind.get("type") for kind in kinds} <= {"integer", "number", "string"} else "any"
    kind = kinds[0] if kinds else {}
    if kind is not schema:
        return _go_type(kind, schemas, field)
    match kind.get("type"):
        case "array":
            return f"[]{_go_type(kind.get('items', {}), schemas)}"
        case "object":
            return "map[string]any"
        case "integer":
            return "int"
        case "number":
            return "float64"
        case "boolean":
            return "bool"
        case "string":
            return "time.Time" if kind.get("format") == "date-time" or _TIMES.search(field) else "string"
        case _:
            return "string" if "enum" in kind else "json.RawMessage"


def _kinds(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the alternatives of a schema, without null."""
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return [kind for option in schema[union] for kind in _kinds(option)]
    if isinstance(schema.get("type"), list):
        kinds = [kind for kind in schema["type"] if kind != "null"]
        return [schema | {"type": kind} for kind in kinds]
    return [] if schema.get("type") == "null" else [schema]


def _nullable(schema: dict[str, Any]) -> bool:
    if any(_nullable(option) for union in ("anyOf", "oneOf") for option in schema.get(union, ())):
        return True
    return schema.get("type") == "null" or (isinstance(schema.get("type"), list) and "null" in schema["type"])


def _go_name(field: str) -> str:
    return "".join(_INITIALISMS.get(word, word.capitalize()) for word in field.split("_"))


def _words(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main()
