"""Examples of requests: bodies and paths that a node accepts as they stand."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

EXAMPLE_ID = "01981a52-7c3e-7000-8000-000000000000"

_PATHS = {"worker": "w-019a8c5e7f3b2d40", "job": EXAMPLE_ID, "API key": "0123456789abcdef", "tenant": "acme"}
_VALUES: dict[str, Any] = {
    "type": "mail.send", "payload": {"to": "ada@example.com"}, "name": "acme", "scopes": ["submit", "read"],
    "queue": "mail", "queues": ["mail"], "ids": [EXAMPLE_ID], "filter": {"queue": "mail"}, "reason": "not needed",
    "paused": True, "max_running": 5, "id": EXAMPLE_ID, "worker": "w-019a8c5e7f3b2d40", "fence": 1, "key": "charge",
    "destination": "https://example.com", "probe_for": "40s", "at": 1893456000, "fraction": 0.5, "weight": 2,
    "held": [{"id": EXAMPLE_ID, "fence": 1}], "ticket": "the ticket of the link", "expires_in": "15m",
    "outcomes": [{"id": EXAMPLE_ID, "fence": 1, "outcome": "succeeded", "result": {"sent": True}}],
}  # fmt: skip
_OPTIONAL = frozenset({"payload", "ids", "reason", "filter", "paused", "max_running", "queues", "weight"})
"""Optional fields that examples include."""

_NEW = {"LeaseRequest": {"queues": ["mail"], "lease": 30, "register": {"name": "my worker"}}}
"""Whole examples, by type of the body."""

_QUERIES: dict[str, dict[str, Any]] = {
    "PauseQuery": {"type": "mail.send"},
    "PurgeQuery": {"queue": "mail"},
    "StepsQuery": {"worker": _VALUES["worker"], "id": EXAMPLE_ID, "fence": 1},
}
"""Query parameters that a request needs, by type of the query."""


def body_example(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """Return a body that matches the schema and its constraints across fields."""
    for name, whole in _NEW.items():
        if schemas.get(name) is schema:
            return whole
    return _sample(schema, schemas)


def query_example(kind: str, name: str) -> Any:
    """Return the value of a query parameter that a request needs; None for others."""
    return _QUERIES.get(kind, {}).get(name)


def path_example(subject: str) -> str:
    """Return the id or the name of an object for a path."""
    return _PATHS.get(subject, "mail")


def curl(method: str, path: str, operation: Mapping[str, Any], address: str) -> str:
    """Return the example as a command."""
    parts = ["curl"]
    if method != "GET":
        parts.append(f"-X {method}")
    if operation["security"]:
        parts.append('-H "Authorization: Bearer $HOLDFAST_API_KEY"')
    if "requestBody" in operation:
        body = json.dumps(operation["requestBody"]["content"]["application/json"]["example"])
        parts.append(f"-H 'Content-Type: application/json' \\\n  -d '{body}'")
    query = {}
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
        elif "example" in parameter:
            query[parameter["name"]] = parameter["example"]
    path += f"?{urlencode(query)}" if query else ""
    return " ".join([*parts, f'"{address}{path}"'])


def _sample(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if "properties" in schema:
        required = set(schema.get("required", ()))
        unwanted: set[str] = set()
        for rule in schema.get("x-constraints", ()):  # use the first allowed combination
            first = rule["anyOf"][0]
            required |= set(first["required"])
            unwanted |= set(first["properties"]) - set(first["required"])
        return {
            name: _VALUES[name] if name in _VALUES else _sample(field, schemas)
            for name, field in schema["properties"].items()
            if name in required or (name in _OPTIONAL and name not in unwanted)
        }
    if "anyOf" in schema or "oneOf" in schema:
        return _sample((schema.get("anyOf") or schema["oneOf"])[0], schemas)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "")
    if kind == "array":
        return [_sample(schema.get("items", {}), schemas)]
    return {"integer": 1, "number": 1, "boolean": True, "object": {}}.get(kind, "…")
