"""Operations of the OpenAPI document: parameters, bodies, responses and links."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.api.openapi.examples import body_example, path_example, query_example
from holdfast.api.openapi.schemas import Components, Schema, ref
from holdfast.api.routing import ANY_CALLER, PUBLIC, Route
from holdfast.wire.events import MEDIA_TYPE as EVENT_STREAM
from holdfast.wire.problems import MEDIA_TYPE, Problem

PROBLEM = "Problem"
"""Name of the response of every error."""

_COMMON_HEADERS: dict[str, Any] = {
    "X-Request-ID": {
        "description": "Id of this request; quote it when you report a problem.",
        "schema": {"type": "string"},
    }
}
_PROBLEM_HEADERS: dict[str, Any] = {
    "Retry-After": {
        "description": "Seconds to wait before a retry; with 429 and 503.",
        "schema": {"type": "integer", "format": "int32", "minimum": 1},
    },
    "WWW-Authenticate": {"description": "`Bearer`; with 401.", "schema": {"type": "string"}},
}
_MEANINGS = {200: "OK", 201: "Created", 202: "Accepted", 204: "No content", 503: "Not available"}
_HEADER_SCHEMAS: dict[str, dict[str, Any]] = {
    "Idempotency-Key": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^[\x20-\x7e]{1,255}$"},
    "Holdfast-Tenant": {"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_.:/@+-]{0,127}$"},
    "Last-Event-ID": {"type": "string", "pattern": r"^[0-9]{1,19}$"},
}
_PATH_TEXTS = {"id": "Id of the {}.", "name": "Name of the {}."}
_SUBJECTS = {"jobs": "job", "workers": "worker", "keys": "API key", "queues": "queue", "tenants": "tenant"}


def describe_operation(route: Route, table: Iterable[Route], components: Components) -> dict[str, Any]:
    """Describe one route."""
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": _description(route),
        "tags": [route.tag],
        "parameters": [*_path_parameters(route), *_query_parameters(route, components), *_header_parameters(route)],
        "responses": {
            **{str(status): _response(route, status, kind, components) for status, kind in route.responses.items()},
            "default": {"$ref": f"#/components/responses/{PROBLEM}"},
        },
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": components.is_required(route.body),
            "content": {
                "application/json": {
                    "schema": components.of(route.body),
                    "example": body_example(components.schemas[route.body.__name__], components.schemas),
                }
            },
        }
    if route.scope == PUBLIC:
        operation["security"] = []
    else:
        operation["security"] = [{"bearer": []}]
        operation["x-scope"] = str(route.scope)
    _add_links(route, table, operation)
    return operation


def problem_response() -> dict[str, Any]:
    """Describe the response of every error."""
    return {
        "description": "The request failed; `code` says why, and `detail` what to do.",
        "headers": _COMMON_HEADERS | _PROBLEM_HEADERS,
        "content": {MEDIA_TYPE: {"schema": ref(Problem.__name__)}},
    }


def error_statuses(route: Route) -> list[int]:
    """Return the error statuses that a route may respond with."""
    statuses = {400, 408, 414, 422, 431, 500, 503, *route.error_statuses}
    if route.scope != PUBLIC:
        statuses |= {401, 403, 429}
    if route.body is not None:
        statuses |= {413, 415}
    if route.parameters:
        statuses.add(404)
    return sorted(statuses)


def _description(route: Route) -> str:
    text = " ".join((inspect.getdoc(route.handler) or "").split("\n\n")[0].split())
    scope = {PUBLIC: "Needs no API key.", ANY_CALLER: "Needs any valid API key or token."}
    text = f"{text} {scope.get(str(route.scope), f'Needs the scope `{route.scope}`.')}"
    return f"{text} Available in demo mode only." if route.demo else text


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


def _link_to(route: Route, parameters: Mapping[str, str]) -> dict[str, Any]:
    return {"operationId": route.name, "parameters": parameters}


def _response(route: Route, status: int, kind: Any, components: Components) -> dict[str, Any]:
    response: dict[str, Any] = {"description": _MEANINGS.get(status, "OK")}
    if kind == EVENT_STREAM:
        response["description"] = "Stream of events. The schema is that of the `data` of one event."
        response["content"] = {kind: {"schema": ref("Event")}}
    elif isinstance(kind, str):
        response["content"] = {kind: {"schema": {"type": "string"}}}
    elif kind is not None:
        response["content"] = {"application/json": {"schema": components.of(kind)}}
    response["headers"] = _COMMON_HEADERS | {
        name: {"description": text, "schema": {"type": "string"}}
        for name, text in route.response_headers.get(status, {}).items()
    }
    return response


def _path_parameters(route: Route) -> list[dict[str, Any]]:
    subject = next((word for part, word in _SUBJECTS.items() if f"/{part}/{{" in route.path), "object")
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": _PATH_TEXTS[name].format(subject),
            "schema": {"type": "string", "minLength": 1},
            "example": path_example(subject),
        }
        for name in route.parameters
    ]


def _query_parameters(route: Route, components: Components) -> list[dict[str, Any]]:
    if route.query is None:
        return []
    schema = components.queries[route.query]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": field["description"],
            "schema": _without_null(field),
            **_example(route.query, name),
        }
        for name, field in schema["properties"].items()
    ]


def _example(query: type, name: str) -> dict[str, Any]:
    value = query_example(query.__name__, name)
    return {} if value is None else {"example": value}


def _without_null(field: Schema) -> Schema:
    """Return the schema of a parameter, which is never null and is described beside it."""
    schema = {name: value for name, value in field.items() if name != "description"}
    if isinstance(schema.get("type"), list):
        return schema | {"type": next(kind for kind in schema["type"] if kind != "null")}
    if "anyOf" not in schema:
        return schema
    kinds = [kind for kind in schema.pop("anyOf") if kind != {"type": "null"}]
    return kinds[0] | schema if len(kinds) == 1 else {"anyOf": kinds, **schema}


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "header", "required": False, "description": text, "schema": _HEADER_SCHEMAS[name]}
        for name, text in route.headers.items()
    ]
