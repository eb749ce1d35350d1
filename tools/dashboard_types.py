"""TypeScript types of everything the API takes and gives, made from its own description."""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast.api.openapi import describe
from holdfast.api.routes import ALL

HEAD = """\
// Made from the API's description by tools/dashboard_types.py: run ./dev dashboard --types, do not change it here.
/* eslint-disable */

/** Any JSON, as it was sent: whole numbers that JavaScript's own cannot hold are bigints. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };
"""
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def written() -> str:
    """The whole file."""
    described = describe(ALL, "")
    parts = [HEAD]
    schemas = described["components"]["schemas"]
    taken = _taken(described)
    for name, schema in sorted(schemas.items()):
        parts.append(f"{_comment(schema)}export interface {name} {_object(schema, whole=name not in taken)}\n")
    parts.append(_operations(described))
    return "\n".join(parts)


def _taken(described: dict[str, Any]) -> set[str]:
    """Schemas in which a field may be missing: those of requests, and of problems. Answers have all their fields."""
    rest = ["Problem"]
    for methods in described["paths"].values():
        for operation in methods.values():
            rest += _named(operation.get("requestBody", {}))
    found: set[str] = set()
    while rest:
        name = rest.pop()
        if name not in found:
            found.add(name)
            rest += _named(described["components"]["schemas"][name])
    return found


def _named(schema: Any) -> list[str]:
    return [found.rpartition("/")[2] for found in re.findall(r"#/components/schemas/\w+", json.dumps(schema))]


def _operations(described: dict[str, Any]) -> str:
    lines = [
        "/** What each operation takes in its query and body, and what it answers with. */",
        "export interface Operations {",
    ]
    for path, methods in sorted(described["paths"].items()):
        for method, operation in sorted(methods.items()):
            asked = [each for each in operation["parameters"] if each["in"] == "query"]
            query = "{ " + "; ".join(f"{_key(each['name'])}?: {_type(each['schema'])}" for each in asked) + " }"
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            answers = [
                _type(answer["content"]["application/json"]["schema"])
                if "application/json" in answer.get("content", {})
                else "null"
                for status, answer in operation["responses"].items()
                if status.startswith("2")
            ]
            fields = [
                f"path: {json.dumps(path)}",
                f"method: {json.dumps(method.upper())}",
                f"query: {query if asked else 'Record<string, never>'}",
                f"body: {'never' if body is None else _type(body)}",
                f"answer: {' | '.join(dict.fromkeys(answers))}",
            ]
            lines.append(f"  {operation['operationId']}: {{ {'; '.join(fields)} }};")
    return "\n".join([*lines, "}", ""])


def _object(schema: dict[str, Any], *, whole: bool = False) -> str:
    """`whole`: a field with a default is always there."""
    needed = set(schema.get("required", ()))
    if whole:
        needed |= {name for name, field in schema.get("properties", {}).items() if "default" in field}
    lines = ["{"]
    for name, field in schema.get("properties", {}).items():
        lines.append(f"{_comment(field, '  ')}  {_key(name)}{'' if name in needed else '?'}: {_type(field)};")
    return "\n".join([*lines, "}"])


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(dict.fromkeys(_type({**schema, "type": each}) for each in kind))
    match kind:
        case "array":
            inner = _type(schema.get("items", {}))
            return f"({inner})[]" if " " in inner else f"{inner}[]"
        case "object":
            return _object(schema) if "properties" in schema else "{ [key: string]: Json }"
        case "integer" | "number":
            return "number"
        case "string" | "boolean" | "null":
            return str(kind)
        case _:
            return "Json"


def _comment(schema: dict[str, Any], indent: str = "") -> str:
    text = schema.get("description", "").replace("*/", "* /").strip()
    return f"{indent}/** {' '.join(text.split())} */\n" if text else ""


def _key(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)
