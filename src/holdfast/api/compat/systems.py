"""Tables of the documented calls of the source systems A to E."""

import functools
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from holdfast.api.compat import calls
from holdfast.api.compat.access import AnonymousAccess, by_key, by_token
from holdfast.api.compat.calls import Call, System
from holdfast.api.compat.shapes import JobShape, PageQuery, SourceBatch, SourceJob, Submission, Words
from holdfast.api.routes import ALL, events
from holdfast.api.routing import MAX_BATCH_BODY_BYTES, MAX_BODY_BYTES, PUBLIC, Authenticate, Route
from holdfast.model.access import Scope
from holdfast.model.job import RetryRule, UniqueSpec
from holdfast.model.time import seconds


class SourceCall(NamedTuple):
    """A documented call of a source system."""

    method: Literal["GET", "POST"]
    path: str
    handler: Call
    scope: Scope | Literal["public"]
    body: Any = None
    query: Any = None
    body_limit: int = MAX_BODY_BYTES
    demo: bool = False
    """Served in demo mode only."""


def _same_as(method: Literal["GET", "POST"], path: str, of_api: str) -> SourceCall:
    """Return the call that a route of the API serves, in the words of the API."""
    route = next(route for route in ALL if (route.method, route.path) == (method, of_api))
    scope = PUBLIC if route.scope == PUBLIC else Scope(route.scope)
    return SourceCall(method, path, calls.from_api(route.handler), scope, route.body, route.query, demo=route.demo)


_UPPER = Words("PENDING", "RUNNING", "SUCCESS", "FAILED", "CANCELLED")
_LOWER = Words("pending", "running", "completed", "failed", "cancelled")
_NO_JITTER = 0.0

A = System(
    "a",
    JobShape(
        _UPPER,
        ("type", "status", "attempts", "max_attempts", "payload", "locked_by", "locked_until", "created_at",
         "updated_at"),
        hex_ids=True,
    ),
)  # fmt: skip
B = System(
    "b",
    JobShape(_LOWER, ("type", "status", "payload", "attempts", "error", "created_at", "failed_at")),
    Submission(
        RetryRule(jitter=_NO_JITTER, delays=(seconds(1), seconds(2), seconds(4), seconds(8))),
        max_attempts=5,
        unique=UniqueSpec(within=seconds(86_400)),
    ),
    receipt=("type", "status"),
    list_name="jobs",
)
C = System(
    "c",
    JobShape(
        _LOWER,
        ("tenant_id", "type", "status", "payload", "priority", "attempts", "max_attempts", "result", "error",
         "scheduled_at", "created_at", "started_at", "completed_at", "updated_at"),
    ),
    list_name="tasks",
)  # fmt: skip
D = System(
    "d",
    JobShape(
        _LOWER._replace(cancelled="failed"),
        ("type", "payload", "status", "attempts", "max_attempts", "scheduled_at", "started_at", "completed_at",
         "created_at", "updated_at"),
    ),
    Submission(RetryRule(base=seconds(2), jitter=_NO_JITTER), max_attempts=3),
    receipt=("status",),
)  # fmt: skip
E = System(
    "e",
    JobShape(_UPPER._replace(done="COMPLETED"), ("type", "status", "due_at", "payload", "created_at")),
    Submission(
        RetryRule(jitter=_NO_JITTER, delays=(seconds(60), seconds(300), seconds(900))),
        max_attempts=5,
        action_is_type=True,
    ),
)

_TASKS = list[SourceJob] | SourceBatch

CALLS: dict[str, tuple[System, tuple[SourceCall, ...]]] = {
    # A also documents GET /healthz, which is a route of the API.
    "a": (A, (
        SourceCall("POST", "/jobs", calls.submit, Scope.SUBMIT, SourceJob),
        SourceCall("GET", "/jobs/{id}", calls.get, Scope.READ),
    )),
    "b": (B, (
        SourceCall("POST", "/addJob", calls.submit, Scope.SUBMIT, SourceJob),
        SourceCall("GET", "/failedJobs", calls.list_failed, Scope.READ, query=PageQuery),
    )),
    "c": (C, (
        SourceCall("POST", "/api/tasks", calls.submit, Scope.SUBMIT, SourceJob),
        SourceCall(
            "POST", "/api/tasks/batch", calls.submit_batch, Scope.SUBMIT, _TASKS, body_limit=MAX_BATCH_BODY_BYTES
        ),
        SourceCall("GET", "/api/tasks", calls.list_jobs, Scope.READ, query=PageQuery),
        SourceCall("GET", "/api/tasks/{id}", calls.get, Scope.READ),
        SourceCall("POST", "/api/tasks/{id}/cancel", calls.cancel, Scope.CANCEL),
        _same_as("GET", "/api/analytics", "/v1/analytics"),
        _same_as("GET", "/api/analytics/throughput", "/v1/analytics/throughput"),
        _same_as("GET", "/api/analytics/types", "/v1/analytics/types"),
        _same_as("GET", "/api/workers", "/v1/workers"),
        SourceCall("GET", "/api/sse/events", calls.stream_events, Scope.READ, query=events.EventQuery),
        SourceCall("GET", "/api/health", calls.health_json, PUBLIC),
        _same_as("POST", "/api/demo/seed", "/v1/demo/seed"),
        _same_as("POST", "/api/demo/clear", "/v1/demo/clear"),
    )),
    "d": (D, (
        SourceCall("POST", "/jobs", calls.submit, Scope.SUBMIT, SourceJob),
        SourceCall("GET", "/jobs", calls.list_jobs, Scope.READ, query=PageQuery),
        SourceCall("GET", "/jobs/{id}", calls.get, Scope.READ),
        SourceCall("GET", "/stats", calls.count_by_status, Scope.READ),
        SourceCall("GET", "/health", calls.health_text, PUBLIC),
    )),
    "e": (E, (
        SourceCall("POST", "/tasks", calls.submit, Scope.SUBMIT, SourceJob),
    )),
}  # fmt: skip
"""Calls by the letter of their system."""


_CREDENTIALS: dict[str, Authenticate] = {"b": by_token, "c": by_key}
"""Authentication of the systems that document one."""


def routes_of(letters: Sequence[str], anonymous: AnonymousAccess, *, demo_mode: bool) -> list[Route]:
    """Return the routes of these systems; the first one serves a call that two of them have."""
    found: dict[tuple[str, str], Route] = {}
    for letter in letters:
        system, documented = CALLS[letter]
        authenticate: Authenticate = _CREDENTIALS.get(letter, anonymous.authenticate)
        for route in _routes(system, documented, authenticate):
            if demo_mode or not route.demo:
                found.setdefault((route.method, route.path), route)
    return list(found.values())


def _routes(system: System, documented: Iterable[SourceCall], authenticate: Authenticate) -> Iterable[Route]:
    for call in documented:
        yield Route(
            call.method,
            call.path,
            call.scope,
            functools.partial(call.handler, system),
            f"Call of source system {system.letter.upper()}",
            {200: dict},
            call.body,
            call.query,
            body_limit=call.body_limit,
            demo=call.demo,
            large_page=call.query is PageQuery,
            any_media_type=True,
            authenticate=authenticate,
        )
