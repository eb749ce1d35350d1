"""Generate TypeScript types of the API from its OpenAPI description."""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast.api.openapi.document import describe
from holdfast.api.routes import ALL

HEAD = """\
// Generated from the OpenAPI description by tools/dashboard_types.py. Do not edit: run ./dev dashboard --types.
/* eslint-disable */

/** Any JSON value. Integers beyond `Number.MAX_SAFE_INTEGER` are bigints. */
export type Json = null | boolean | number | bigint | string | Json[] | { [key: string]: Json };
"""
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")


def generate() -> str:
    """Return the content of the generated file."""
    description = describe(ALL, "")
    parts = [HEAD]
    schemas = description["components"]["schemas"]
    parts += [declare(name, schema) for name, schema in sorted(schemas.items())]
    parts.append(_operations(description))
    return "\n".join(parts)


def declare(name: str, schema: dict[str, Any]) -> str:
    """Return the declaration of a named schema."""
    if "properties" in schema:
        return f"{_comment(schema)}export interface {name} {_object(schema)}\n"
    return f"{_comment(schema)}export type {name} = {_type(schema)};\n"


def request_schemas(description: dict[str, Any]) -> set[str]:
    """Return the schemas whose fields may be missing: requests and problems. Responses have all their fields."""
    pending = ["Problem"]
    for methods in description["paths"].values():
        for operation in methods.values():
            pending += referenced(operation.get("requestBody", {}))
    return reachable(pending, description)


def reachable(names: list[str], description: dict[str, Any]) -> set[str]:
    """Return these schemas and those that they refer to, directly or through others."""
    pending, found = list(names), set[str]()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += referenced(description["components"]["schemas"][name])
    return found


def referenced(schema: Any) -> list[str]:
    """Return the names of the schemas that a part of the description refers to."""
    return [reference.rpartition("/")[2] for reference in re.findall(r"#/components/schemas/\w+", json.dumps(schema))]


def _operations(description: dict[str, Any]) -> str:
    lines = [
        "/** Query, body and response of each operation. */",
        "export interface Operations {",
    ]
    for path, methods in sorted(description["paths"].items()):
        for method, operation in sorted(methods.items()):
            parameters = [parameter for parameter in operation["parameters"] if parameter["in"] == "query"]
            query = "{ " + "; ".join(f"{_property(p['name'])}?: {_type(p['schema'])}" for p in parameters) + " }"
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            responses = [
                _type(response["content"]["application/json"]["schema"])
                if "application/json" in response.get("content", {})
                else "null"
                for status, response in operation["responses"].items()
                if status.startswith("2")
            ]
            fields = [
                f"path: {json.dumps(path)}",
                f"method: {json.dumps(method.upper())}",
                f"query: {query if parameters else 'Record<string, never>'}",
                f"body: {'never' if body is None else _type(body)}",
                f"response: {' | '.join(dict.fromkeys(responses))}",
            ]
            lines.append(f"  {operation['operationId']}: {{ {'; '.join(fields)} }};")
    return "\n".join([*lines, "}", ""])


def _object(schema: dict[str, Any]) -> str:
    """Return an object type."""
    needed = set(schema.get("required", ()))
    lines = ["{"]
    for name, field in schema.get("properties", {}).items():
        lines.append(f"{_comment(field, '  ')}  {_property(name)}{'' if name in needed else '?'}: {_type(field)};")
    return "\n".join([*lines, "}"])


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(_type(option) for option in schema[union]))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(dict.fromkeys(_type({**schema, "type": name}) for name in kind))
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


def _property(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name)
