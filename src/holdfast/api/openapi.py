"""OpenAPI 3.1 document, generated from the route table."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast.api.routing import PUBLIC, Route
from holdfast.wire.problems import MEDIA_TYPE, TITLES, Problem
from holdfast.wire.schema_constraints import RULES

_REF = "#/components/schemas/{name}"


def describe(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """Return the document served at `/openapi.json`."""
    table = list(routes)
    kinds = [kind for route in table for kind in (route.body, *route.responses.values()) if _is_type(kind)]
    schemas, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_REF)
    by_kind = dict(zip([*kinds, Problem], schemas, strict=True))
    for kind, rule in RULES.items():
        if kind.__name__ in components:
            components[kind.__name__]["allOf"] = [rule]
    paths: dict[str, Any] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind, components)
        _add_links(route, table, paths[route.path][route.method.lower()])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "holdfast",
            "version": version,
            "description": "Background jobs that are not lost. Errors are RFC 9457 problems with a stable `code`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in table)],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {str(status): _problem(status, by_kind[Problem]) for status in TITLES},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "An API key or a JWT."}},
        },
    }


def _operation(route: Route, schemas: dict[Any, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": [*_path_parameters(route), *_query_parameters(route), *_header_parameters(route)],
        "responses": {str(status): _response(route, status, kind, schemas) for status, kind in route.responses.items()},
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": _is_required(components[route.body.__name__]),
            "content": {"application/json": {"schema": schemas[route.body]}},
        }
    for status in _error_statuses(route):
        operation["responses"].setdefault(str(status), {"$ref": f"#/components/responses/{status}"})
    if route.scope == PUBLIC:
        operation["security"] = []
    else:
        operation["security"] = [{"bearer": []}]
        operation["x-scope"] = str(route.scope)
    return operation


def _is_required(schema: Mapping[str, Any]) -> bool:
    """Return whether the body is required, by a required field or a required alternative."""
    rules = schema.get("allOf", ())
    return bool(schema.get("required")) or any(all(kind["required"] for kind in rule["anyOf"]) for rule in rules)


def _error_statuses(route: Route) -> list[int]:
    """Return the error statuses that a route may respond with."""
    statuses = {400, 408, 414, 422, 431, 500, 503, *route.error_statuses}
    if route.scope != PUBLIC:
        statuses |= {401, 403, 429}
    if route.body is not None:
        statuses |= {413, 415}
    if route.parameters:
        statuses.add(404)
    return sorted(statuses)


def _problem(status: int, schema: Any) -> dict[str, Any]:
    """Describe the problem response of a status."""
    headers = _COMMON_HEADERS | ({"Retry-After": _RETRY_AFTER} if status in (429, 503) else {})
    if status == 401:
        headers["WWW-Authenticate"] = {"description": "`Bearer`", "schema": {"type": "string"}}
    return {"description": TITLES[status], "headers": headers, "content": {MEDIA_TYPE: {"schema": schema}}}


def _link_to(route: Route, parameters: Mapping[str, str]) -> dict[str, Any]:
    return {"operationId": route.name, "parameters": parameters}


def _add_links(route: Route, table: Iterable[Route], operation: dict[str, Any]) -> None:
    """Add OpenAPI links from a created resource to the operations on it.

    Skips resources that a separate POST creates.
    """
    if route.method != "POST":
        return
    created = {other.path for other in table if other.method == "POST" and 201 in other.responses}
    for status, kind in route.responses.items():
        fields = getattr(kind, "__struct_fields__", ())
        links = {
            other.name: _link_to(other, {name: f"$response.body#/{name}" for name in other.parameters})
            for other in table
            if other.path.startswith(f"{route.path}/{{")
            and set(other.parameters) <= set(fields)
            and (other.path not in created or 201 in other.responses)
        }
        if route.path in created and route.parameters:
            links |= {
                other.name: _link_to(other, {name: f"$request.path.{name}" for name in route.parameters})
                for other in table
                if other.path == route.path and other.method != "POST"
            }
        if links:
            operation["responses"][str(status)]["links"] = links


def _response(route: Route, status: int, kind: Any, schemas: dict[Any, Any]) -> dict[str, Any]:
    response: dict[str, Any] = {"description": _MEANINGS.get(status, "OK")}
    if isinstance(kind, str):
        response["content"] = {kind: {"schema": {"type": "string"}}}
    elif kind is not None:
        response["content"] = {"application/json": {"schema": schemas[kind]}}
    response["headers"] = _COMMON_HEADERS | {
        name: {"description": text, "schema": {"type": "string"}}
        for name, text in route.response_headers.get(status, {}).items()
    }
    return response


_COMMON_HEADERS: dict[str, Any] = {
    "X-Request-ID": {
        "description": "Id of this request; quote it when you report a problem.",
        "schema": {"type": "string"},
    }
}
_RETRY_AFTER = {"description": "Seconds to wait before retrying.", "schema": {"type": "integer", "minimum": 1}}


_MEANINGS = {200: "OK", 201: "Created", 202: "Accepted", 204: "No content"}


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.parameters
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    _, components = msgspec.json.schema_components([route.query], ref_template="{name}")
    schema = components[route.query.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": _without_null(field),
            **({"description": field["description"]} if "description" in field else {}),
        }
        for name, field in schema["properties"].items()
    ]


def _without_null(field: dict[str, Any]) -> dict[str, Any]:
    """Remove null from a schema: query parameters are omitted, never null."""
    schema = {name: value for name, value in field.items() if name not in ("default", "description")}
    if "anyOf" not in schema:
        return schema
    kinds = [kind for kind in schema.pop("anyOf") if kind != {"type": "null"}]
    return kinds[0] | schema if len(kinds) == 1 else {"anyOf": kinds, **schema}


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": False, "description": text, "schema": _HEADER_SCHEMAS[name]}
        for name, text in route.headers.items()
    ]


_HEADER_SCHEMAS: dict[str, dict[str, Any]] = {
    "Idempotency-Key": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x20-\x7e]{1,255}$"},
    "Holdfast-Tenant": {"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.:/@+-]{0,127}$"},
    "Last-Event-ID": {"type": "string", "pattern": r"^[0-9]{1,19}$"},
}


def _is_type(kind: Any) -> bool:
    return kind is not None and not isinstance(kind, str)
