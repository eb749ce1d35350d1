"""Generate docs/reference/http.md from the OpenAPI description."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from holdfast.api.openapi.document import describe
from holdfast.api.routes import ALL
from holdfast.wire.problems import TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from holdfast.api.routing import Route

_BOUNDS = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "{} or more characters",
    "maxLength": "at most {} characters",
    "maxItems": "at most {}",
}


def parts() -> Iterator[str]:
    """Yield the sections of the page in order."""
    description = describe(ALL, "")
    schemas = description["components"]["schemas"]
    yield _INTRODUCTION
    described = [route for route in ALL if route.described]
    tags = list(dict.fromkeys(route.tag for route in described))
    for tag, routes in groupby(sorted(described, key=lambda route: tags.index(route.tag)), key=lambda route: route.tag):
        yield f"## {tag[:1].upper()}{tag[1:]}"
        for route in routes:
            yield from _route(route, description["paths"][route.path][route.method.lower()])
    yield "## Types"
    yield "Types of request and response bodies. In requests, fields that are not **required** may be omitted."
    for name, schema in sorted(schemas.items()):
        yield f"### {name}"
        if "description" in schema:
            yield _line(schema["description"])
        yield _fields(schema) if "properties" in schema else _kind(schema)
    yield "## Errors"
    yield "\n".join(["| status | |", "|---|---|", *(f"| {status} | {title} |" for status, title in TITLES.items())])


_INTRODUCTION = """\
Requests and responses are JSON, under `/v1`. Send an API key or a token as `Authorization: Bearer …`; each route lists
the scope it requires, and `admin` includes all scopes ([Keys, tokens and tenants](../guide/access.md)). Errors are
problem details (RFC 9457, `application/problem+json`) with a stable `code`, a `detail` that says what to do, and a
`pointer` to the invalid field. Lists return `{"items": […], "next_cursor": …}`; pass the cursor as `?cursor=` to get
the next page. Times are RFC 3339. Every response has an `X-Request-ID`.

Every node serves the same description at `/docs`, and in machine-readable form at `/openapi.json`."""


def _route(route: Route, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {route.method} {route.path}"
    yield f"{_line(operation['description'])}."
    parameters = [each for each in operation["parameters"] if each["in"] != "path"]
    if parameters:
        rows = [
            f"| `{each['name']}` ({each['in']}) | {_kind(each['schema'])} | {_line(each.get('description', ''))} |"
            for each in parameters
        ]
        yield "\n".join(["| parameter | type | |", "|---|---|---|", *rows])
    if "requestBody" in operation:
        yield f"Body: {_kind(operation['requestBody']['content']['application/json']['schema'])}"
    responses = []
    for status, response in operation["responses"].items():
        if status == "default":
            continue
        content = response.get("content", {})
        body = ", ".join(
            _kind(each["schema"]) if "$ref" in each["schema"] else f"`{kind}`" for kind, each in content.items()
        )
        headers = [f"`{name}`: {_line(each['description'])}" for name, each in response["headers"].items()]
        extra = "; ".join(text for text in headers if "X-Request-ID" not in text)
        responses.append(f"**{status}** {body or 'no body'}{f' ({extra})' if extra else ''}")
    yield f"Responses: {'; '.join(responses)}"


def _fields(schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        f"| `{name}` | {_kind(field)}{', **required**' if name in required else ''} "
        f"| {_line(field.get('description', ''))} |"
        for name, field in schema.get("properties", {}).items()
    ]
    return "\n".join(["| field | type | |", "|---|---|---|", *rows]) if rows else "No fields."


def _kind(schema: Mapping[str, Any]) -> str:
    """Describe a schema in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return _either(f"`{value}`" for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            shown = schema[several]
            wide = [each for each in shown if each.get("type") != "integer" or {**each, "type": "number"} not in shown]
            return _either(_kind(each) for each in wide)
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "any JSON")
    if isinstance(kind, list):
        return _either(_kind({**schema, "type": name}) if name != "null" else name for name in kind)
    if kind == "array":
        text = f"list of {_kind(schema.get('items', {}))}"
    elif kind == "object" and schema.get("additionalProperties") not in (None, False, True):
        text = f"object of {_kind(schema['additionalProperties'])}"
    else:
        text = str(kind) + (f" ({schema['format']})" if "format" in schema else "")
    bounds = [words.format(f"{schema[name]:,}") for name, words in _BOUNDS.items() if name in schema]
    return ", ".join([text, *bounds]).replace("|", "\\|")


def _either(kinds: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(kinds))


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").rstrip(".")
