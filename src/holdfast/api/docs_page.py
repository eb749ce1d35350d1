"""`/docs`: human-readable API reference. Plain HTML and CSS, no scripts, no external hosts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import groupby
from typing import Any

from holdfast.api.openapi.document import describe
from holdfast.api.openapi.examples import curl
from holdfast.api.openapi.operations import error_statuses
from holdfast.api.routing import ANY_CALLER, PUBLIC, Route
from holdfast.wire.problems import MEDIA_TYPE, TITLES

STYLE_PATH = "/docs.css"

ADDRESS = b"$HOLDFAST_API_URL"
"""Stands for the address of the service in the examples of the cached page."""

_HOST = re.compile(rb"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")


def page(routes: Iterable[Route], version: str) -> bytes:
    """Render the page."""
    unsorted = [route for route in routes if route.described]
    tags = list(dict.fromkeys(route.tag for route in unsorted))
    table = sorted(unsorted, key=lambda route: tags.index(route.tag))
    document = describe(table, version)
    groups = [(tag, list(group)) for tag, group in groupby(table, key=lambda route: route.tag)]
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        "<meta name=color-scheme content='light dark'>",
        f"<title>holdfast {escape(version)} API reference</title><link rel=icon href=data:,>",
        f"<link rel=stylesheet href={STYLE_PATH[1:]}></head><body>",
        "<header><h1>holdfast <small>", escape(version), "</small></h1>", _INTRODUCTION, "<nav>",
        *(f"<a href='#{_anchor(tag)}'>{escape(tag)}</a> " for tag, _ in groups), "</nav></header><main>",
    ]  # fmt: skip
    for tag, group in groups:
        parts.append(f"<section><h2 id='{_anchor(tag)}'>{escape(tag)}</h2>")
        for route in group:
            parts += _operation(route, document)
        parts.append("</section>")
    return "".join([*parts, "</main></body></html>"]).encode()


def with_address(rendered: bytes, host: bytes, base_path: str, *, https: bool, placeholder: bytes = ADDRESS) -> bytes:
    """Return the page with the address in its examples by which the caller reached it.

    A host that is not a plain name or address, with an optional port, leaves the variable in place.
    """
    if not _HOST.fullmatch(host):
        return rendered
    return rendered.replace(placeholder, (b"https://" if https else b"http://") + host + escape(base_path).encode())


_INTRODUCTION = """<p>JSON in, JSON out. Send a key or a token as <code>Authorization: Bearer …</code>; each route
lists the scope it needs; <code>admin</code> includes all scopes. Errors are RFC 9457 problems with a stable
<code>code</code> and a <code>pointer</code> to the invalid field. Lists have more pages while there is a
<code>next_cursor</code>. Every response has an <code>X-Request-ID</code>. Machine-readable:
<a href=openapi.json>openapi.json</a>.</p>
<p>The examples use the address of this node. To run one, create a key with <code>holdfast keys create</code>, then
<code>export HOLDFAST_API_KEY=hf_…</code>.</p>"""


def _operation(route: Route, document: Mapping[str, Any]) -> Iterator[str]:
    operation = document["paths"][route.path][route.method.lower()]
    scope_label = {PUBLIC: "no key", ANY_CALLER: "any key"}.get(str(route.scope), f"scope {route.scope}")
    yield f"<article id='{escape(route.name)}'><h3><span class=method>{route.method}</span> "
    yield f"<code>{escape(route.path)}</code> <span class=scope>{escape(scope_label)}</span></h3>"
    yield f"<p>{escape(operation['description'])}</p>"
    rows = [
        _row(
            parameter["name"],
            _kind(parameter["schema"], document),
            parameter.get("description"),
            required=parameter["required"],
            where=parameter["in"],
        )
        for parameter in operation["parameters"]
    ]
    yield from _table("Parameters", rows)
    if route.body is not None:
        schema = document["components"]["schemas"][route.body.__name__]
        yield from _table("Body", _fields(schema, document))
    yield from _table("Responses", _responses(operation, document, error_statuses(route)))
    example = escape(curl(route.method, route.path, operation, ADDRESS.decode()))
    yield f"<details><summary>Example</summary><pre><code>{example}</code></pre></details></article>"


def _fields(schema: Mapping[str, Any], document: Mapping[str, Any]) -> list[str]:
    required = schema.get("required", ())
    return [
        _row(name, _kind(field, document), field.get("description"), required=name in required)
        for name, field in schema.get("properties", {}).items()
    ]


def _responses(operation: Mapping[str, Any], document: Mapping[str, Any], errors: list[int]) -> list[str]:
    rows = []
    for status, response in operation["responses"].items():
        if status == "default":
            continue
        kinds = [
            f"{escape(media)}: {_kind(content['schema'], document)}" if "$ref" in content["schema"] else escape(media)
            for media, content in response.get("content", {}).items()
        ]
        rows.append(f"<tr><td><code>{status}</code><td>{escape(response['description'])}<td>{', '.join(kinds) or '–'}")
    titles = ", ".join(f"<code>{status}</code> {escape(TITLES[status].lower())}" for status in errors)
    return [*rows, f"<tr><td>problems<td>{titles}<td>{MEDIA_TYPE}"]


def _table(title: str, rows: list[str]) -> Iterator[str]:
    if rows:
        yield f"<h4>{title}</h4><div class=wide><table>{''.join(rows)}</table></div>"


def _row(name: str, kind: str, text: str | None, *, required: bool, where: str = "") -> str:
    labels = " ".join(label for label in (where, "<b>required</b>" if required else "") if label)
    return f"<tr><td><code>{escape(name)}</code> <small>{labels}</small><td>{kind}<td>{escape(text or '')}"


def _kind(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Describe a type and its bounds as HTML."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = document["components"]["schemas"][name]
        if "properties" not in target and "oneOf" not in target:
            return _kind(target, document)
        fields = target.get("properties", {})
        field_names = ", ".join(f"<code>{escape(field)}</code>" for field in fields)
        return f"{escape(name)} <small>({field_names})</small>" if field_names else escape(name)
    if "anyOf" in schema:
        kinds = [_kind(kind, document) for kind in schema["anyOf"] if kind != {"type": "null"}]
        return " or ".join(dict.fromkeys(kinds))
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    if schema.get("type") in ("array", ["array", "null"]):
        return f"list of {_kind(schema.get('items', {}), document)}"
    bounds = [f"≥ {schema['minimum']}"] if "minimum" in schema else []
    bounds += [f"≤ {schema['maximum']:,}"] if "maximum" in schema else []
    bounds += [f"≤ {schema['maxLength']} characters"] if "maxLength" in schema else []
    kinds = schema.get("type", "any JSON")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    name = {"date-time": "time"}.get(schema.get("format", ""), kind)
    return f"{name} <small>{escape(', '.join(bounds))}</small>" if bounds else str(name)


def _anchor(text: str) -> str:
    return escape(text.replace(" ", "-"))


STYLE = b"""\
:root { color-scheme: light dark; --text: #1d2430; --soft: #5a6575; --line: #d9dee6; --back: #fff; --panel: #f5f7fa;
  --accent: #0b5cad; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ee; --soft: #9aa6b5; --line: #333c49; --back: #12161c; --panel: #1b212a; --accent: #7ab8ff; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
header, main { max-width: 60rem; margin: 0 auto; padding: 1rem 1.25rem; }
h1 { margin: .5rem 0; } h1 small { color: var(--soft); font-size: 1rem; font-weight: normal; }
h2 { margin: 2.5rem 0 .5rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); text-transform: capitalize; }
h3 { margin: 0; font-size: 1.05rem; font-weight: 600; overflow-wrap: anywhere; }
h4 { margin: 1rem 0 .25rem; font-size: .85rem; color: var(--soft); text-transform: uppercase; letter-spacing: .04em; }
a { color: var(--accent); } a:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
article { margin: 1rem 0; padding: 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; }
article p { margin: .4rem 0; }
.method { display: inline-block; min-width: 4.2em; color: var(--accent); }
.scope { margin-left: .5rem; padding: .05rem .5rem; border: 1px solid var(--line); border-radius: 99px;
  color: var(--soft); font-size: .8rem; font-weight: normal; white-space: nowrap; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", monospace; font-size: .88em; }
.wide { overflow-x: auto; } table { width: 100%; border-collapse: collapse; font-size: .92rem; }
td { padding: .3rem .6rem .3rem 0; border-top: 1px solid var(--line); vertical-align: top; }
td:first-child { white-space: nowrap; } td small { color: var(--soft); }
details { margin-top: .75rem; } summary { cursor: pointer; color: var(--accent); }
pre { margin: .5rem 0 0; padding: .75rem; overflow-x: auto; background: var(--back); border: 1px solid var(--line);
  border-radius: 6px; }
@media (max-width: 40rem) { td { display: block; border: 0; padding: .1rem 0; } td:first-child { white-space: normal; }
  tr { display: block; padding: .4rem 0; border-top: 1px solid var(--line); } }
"""
