"""OpenAPI document: all described routes, their schemas, and one response for problems."""

from collections.abc import Iterable
from typing import Any

from holdfast.api.openapi.operations import PROBLEM, describe_operation, problem_response
from holdfast.api.openapi.schemas import Components
from holdfast.api.routing import Route
from holdfast.model.decoded_job import ProgressOut
from holdfast.wire.events import EVENTS
from holdfast.wire.problems import Problem

DEFAULT_ADDRESS = "http://127.0.0.1:8080"
"""Address of a node that `holdfast up` starts.

A node replaces it by its own address when it serves the document.
"""

_TAGS = {
    "jobs": "Submit, read, cancel, retry and delete jobs.",
    "dead letters": "Jobs that failed permanently: list, replay and delete them.",
    "workers": "Registered workers, and the protocol of workers that claim jobs over HTTP.",
    "events": "Changes of jobs and workers, as they happen.",
    "queues": "Queues: their depth and rates, pausing and limiting them.",
    "limits": "Limits of concurrency and rate, and pauses of types and tenants.",
    "analytics": "Counts, rates, durations and fairness.",
    "access": "Tenants, API keys and tokens.",
    "webhooks": "Circuit breakers and signing secrets of webhooks.",
    "demo": "Data of the demo mode.",
    "dashboard": "Pages and files of the dashboard.",
    "node": "Health and metrics of one node, and this description.",
}
"""Description of each group of routes."""


def describe(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """Return the document served at `/openapi.json`."""
    table = [route for route in routes if route.described]
    bodies = [route.body for route in table if route.body is not None]
    responses = [kind for route in table for kind in route.responses.values() if _is_type(kind)]
    queries = [route.query for route in table if route.query is not None]
    components = Components([*bodies, *queries], [*responses, *EVENTS, ProgressOut, Problem], queries=queries)
    paths: dict[str, Any] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = describe_operation(route, table, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "holdfast",
            "version": version,
            "summary": "Background jobs that are not lost.",
            "description": (
                "Submit, run and observe background jobs. Errors are RFC 9457 problems with a stable `code`. Clients "
                "should accept fields and enumeration values that they do not know, because later versions add some."
            ),
            "contact": {"name": "holdfast"},
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": DEFAULT_ADDRESS, "description": "The node that serves this description."}],
        "security": [{"bearer": []}],
        "tags": [{"name": tag, "description": _TAGS[tag]} for tag in dict.fromkeys(route.tag for route in table)],
        "paths": paths,
        "components": {
            "schemas": components.schemas,
            "responses": {PROBLEM: problem_response()},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": "An API key or a JWT."}},
        },
    }


def _is_type(kind: Any) -> bool:
    return kind is not None and not isinstance(kind, str)
