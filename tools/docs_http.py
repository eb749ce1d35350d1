"""docs/reference/http.md, made from the API's description."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from holdfast.api.openapi import describe
from holdfast.api.routes import ALL
from holdfast.api.routing import ANY_CALLER, PUBLIC
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
    """The page, part by part."""
    described = describe(ALL, "")
    schemas = described["components"]["schemas"]
    yield _INTRODUCTION
    tags = list(dict.fromkeys(route.tag for route in ALL))
    for tag, routes in groupby(sorted(ALL, key=lambda route: tags.index(route.tag)), key=lambda route: route.tag):
        yield f"## {tag[:1].upper()}{tag[1:]}"
        for route in routes:
            yield from _route(route, described["paths"][route.path][route.method.lower()])
    yield "## Shapes"
    yield "What bodies and answers are made of. In requests, what is not **required** may be left out."
    for name, schema in sorted(schemas.items()):
        yield f"### {name}"
        if "description" in schema:
            yield _line(schema["description"])
        yield _fields(schema)
    yield "## Refusals"
    yield "\n".join(["| status | |", "|---|---|", *(f"| {status} | {title} |" for status, title in TITLES.items())])


_INTRODUCTION = """\
JSON in, JSON out, below `/v1`. Send a key or a token as `Authorization: Bearer …`; each route tells which scope it
needs, and `admin` includes all ([Keys, tokens and tenants](../guide/access.md)). Errors are problems (RFC 9457,
`application/problem+json`) with a stable `code`, a `detail` that says what to do, and a `pointer` to the field at
fault. Lists answer `{"items": […], "next_cursor": …}` and go on with `?cursor=`. Times are RFC 3339. Every answer has
an `X-Request-ID`.

Every node describes the same at `/docs`, and for programs at `/openapi.json`."""


def _route(route: Route, operation: Mapping[str, Any]) -> Iterator[str]:
    needs = {PUBLIC: "No key is needed", ANY_CALLER: "Any key will do"}.get(str(route.scope), f"Scope `{route.scope}`")
    yield f"### {route.method} {route.path}"
    yield f"{_line(route.summary)}. {needs}.{' Only in demo mode.' if route.demo else ''}"
    asked = [each for each in operation["parameters"] if each["in"] != "path"]
    if asked:
        rows = [
            f"| `{each['name']}` ({each['in']}) | {_kind(each['schema'])} | {_line(each.get('description', ''))} |"
            for each in asked
        ]
        yield "\n".join(["| parameter | takes | |", "|---|---|---|", *rows])
    if "requestBody" in operation:
        yield f"Body: {_kind(operation['requestBody']['content']['application/json']['schema'])}"
    answers = []
    for status, answer in operation["responses"].items():
        if "$ref" in answer:
            continue
        content = answer.get("content", {})
        what = ", ".join(
            _kind(each["schema"]) if kind == "application/json" else f"`{kind}`" for kind, each in content.items()
        )
        told = [f"`{name}`: {_line(each['description'])}" for name, each in answer["headers"].items()]
        extra = "; ".join(text for text in told if "X-Request-ID" not in text)
        answers.append(f"**{status}** {what or 'without a body'}{f' ({extra})' if extra else ''}")
    yield f"Answers: {'; '.join(answers)}"


def _fields(schema: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        f"| `{name}` | {_kind(field)}{', **required**' if name in required else ''} "
        f"| {_line(field.get('description', ''))} |"
        for name, field in schema.get("properties", {}).items()
    ]
    return "\n".join(["| field | is | |", "|---|---|---|", *rows]) if rows else "No fields."


def _kind(schema: Mapping[str, Any]) -> str:
    """A schema in words."""
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
