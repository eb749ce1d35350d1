"""Changes of an OpenAPI description that break existing clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Document = dict[str, Any]


def breaking_changes(old: Document, new: Document) -> list[str]:
    """Return what an existing client could trip over, one line each."""
    return [*_operations(old, new), *_schemas(old, new)]


def _operations(old: Document, new: Document) -> Iterator[str]:
    for path, methods in old["paths"].items():
        for method, before in methods.items():
            where = f"{method.upper()} {path}"
            after = new["paths"].get(path, {}).get(method)
            if after is None:
                yield f"{where}: removed"
                continue
            if before["operationId"] != after["operationId"]:
                yield f"{where}: operationId is now {after['operationId']}, was {before['operationId']}"
            yield from _parameters(where, before, after)
            yield from _bodies(where, before, after)
            for status in before["responses"]:
                if status not in after["responses"]:
                    yield f"{where}: no response {status} any more"
                elif _content(before["responses"][status]) != _content(after["responses"][status]):
                    yield f"{where}: response {status} has another type"
            if before.get("x-scope") != after.get("x-scope"):
                yield f"{where}: needs the scope {after.get('x-scope')}, was {before.get('x-scope')}"


def _parameters(where: str, before: Document, after: Document) -> Iterator[str]:
    known = {(each["in"], each["name"]): each for each in before["parameters"]}
    found = {(each["in"], each["name"]): each for each in after["parameters"]}
    for key, parameter in known.items():
        if key not in found:
            yield f"{where}: parameter {key[1]} removed"
        else:
            yield from _narrowed(f"{where}: parameter {key[1]}", parameter["schema"], found[key]["schema"])
    for key, parameter in found.items():
        if parameter["required"] and not known.get(key, {}).get("required"):
            yield f"{where}: parameter {key[1]} is required"


def _bodies(where: str, before: Document, after: Document) -> Iterator[str]:
    old, new = before.get("requestBody"), after.get("requestBody")
    if new is not None and new["required"] and not (old or {}).get("required"):
        yield f"{where}: a body is required"
    if old is not None and new is not None and _content(old) != _content(new):
        yield f"{where}: the body has another type"


def _content(response: Document) -> dict[str, Any]:
    return {media: content["schema"] for media, content in response.get("content", {}).items()}


def _schemas(old: Document, new: Document) -> Iterator[str]:
    requests = _request_schemas(new)
    for name, before in old["components"]["schemas"].items():
        after = new["components"]["schemas"].get(name)
        if after is None:
            yield f"{name}: removed"
            continue
        yield from _narrowed(name, before, after)
        known, found = before.get("properties", {}), after.get("properties", {})
        for field, schema in known.items():
            if field not in found:
                yield f"{name}.{field}: removed"
            else:
                yield from _narrowed(f"{name}.{field}", schema, found[field])
        if name in requests:
            for field in set(after.get("required", ())) - set(before.get("required", ())):
                yield f"{name}.{field}: required in a request"
        else:
            for field in set(before.get("required", ())) - set(after.get("required", ())):
                yield f"{name}.{field}: may be missing in a response"


def _narrowed(where: str, before: Document, after: Document) -> Iterator[str]:
    """Yield what the new schema no longer allows, or allows in another form."""
    for key in ("$ref", "type", "format", "pattern", "items", "anyOf", "oneOf", "additionalProperties"):
        if before.get(key) != after.get(key):
            yield f"{where}: {key} is now {after.get(key)}, was {before.get(key)}"
    for value in before.get("enum", ()):
        if value not in after.get("enum", ()):
            yield f"{where}: no value {value!r} any more"
    for key, narrower in (
        ("minimum", 1),
        ("minLength", 1),
        ("minItems", 1),
        ("maximum", -1),
        ("maxLength", -1),
        ("maxItems", -1),
    ):
        if key in after and (key not in before or narrower * (after[key] - before[key]) > 0):
            yield f"{where}: {key} is now {after[key]}, was {before.get(key)}"


def _request_schemas(document: Document) -> set[str]:
    schemas, found = document["components"]["schemas"], set()
    pending = [
        _references(operation["requestBody"])
        for methods in document["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    ]
    while pending:
        for name in pending.pop():
            if name not in found:
                found.add(name)
                pending.append(_references(schemas.get(name, {})))
    return found


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"].rpartition("/")[2]] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in _references(value)]
    return [name for value in node for name in _references(value)] if isinstance(node, list) else []
