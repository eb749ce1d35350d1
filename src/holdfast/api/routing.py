"""The table of routes: the one source of routing, authorisation, the API's description and the generated tests."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import unquote

from holdfast.api.http import Answer, Incoming, Stream
from holdfast.errors import Misconfigured
from holdfast.model.access import Caller, Scope
from holdfast.wire.problems import HttpError

if TYPE_CHECKING:
    from holdfast.api.service import Service

Body = TypeVar("Body")
Asked = TypeVar("Asked")

PUBLIC: Literal["public"] = "public"
"""The scope of a route that needs no key: it must be said, so that none is public by omission."""

ANY_CALLER: Literal["any caller"] = "any caller"
"""The scope of a route for whoever has a key or token, whatever it permits."""

BODY_LIMIT = 1024 * 1024
BATCH_LIMIT = 5 * 1024 * 1024


class Call(NamedTuple, Generic[Body, Asked]):
    """What a handler gets: the request, read and checked, and whoever sent it."""

    service: "Service"
    caller: Caller
    path: Mapping[str, str]
    body: Body
    query: Asked
    request: Incoming


Handler = Callable[[Call[Any, Any]], Awaitable[Answer | Stream]]


class Route(NamedTuple):
    """One line of the table."""

    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    """`{name}` is a parameter: one segment."""
    scope: Scope | Literal["public", "any caller"]
    handler: Handler
    summary: str
    answers: Mapping[int, Any]
    """The type of the body for each status of success; None for an empty one, a text for its media type."""
    body: Any = None
    query: Any = None
    body_limit: int = BODY_LIMIT
    tag: str = "jobs"
    headers: Mapping[str, str] = {}
    """Request headers it looks at, and what they mean."""
    answer_headers: Mapping[int, Mapping[str, str]] = {}
    """Headers of its answers, and what they mean."""
    refusals: tuple[int, ...] = ()
    """Statuses it may refuse with, beside those that every route may."""
    demo: bool = False
    """Only there in demo mode."""

    @property
    def name(self) -> str:
        """Its name in the description, made of the handler's."""
        return self.handler.__name__

    @property
    def parameters(self) -> list[str]:
        """The names of the path's parameters."""
        return re.findall(r"\{(\w+)\}", self.path)


class Match(NamedTuple):
    """The route for a request, and the parameters in its path."""

    route: Route
    path: Mapping[str, str]


class Routes:
    """Finds the route for a path, in constant time for those without parameters."""

    def __init__(self, table: Iterable[Route]) -> None:
        self.table = tuple(table)
        self.pages: dict[str, bytes] = {}
        """What was made of the table, kept: it does not change."""
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: list[tuple[re.Pattern[str], dict[str, Route]]] = []
        by_path: dict[str, dict[str, Route]] = {}
        for route in self.table:
            _check(route)
            methods = by_path.setdefault(route.path, {})
            if route.method in methods:
                raise Misconfigured(f"two routes for {route.method} {route.path}: keep one")
            methods[route.method] = route
        for path, methods in by_path.items():
            if "{" not in path:
                self._fixed[path] = methods
            else:
                pattern = "/".join(_segment(part) for part in path.split("/"))
                self._patterns.append((re.compile(pattern), methods))

    def find(self, method: str, path: str) -> Match:
        """The route, or `HttpError` 404 or 405."""
        methods, parameters = self._methods(path)
        route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
        if route is None:
            allowed = _listed(methods)
            raise HttpError(
                405, "method_not_allowed", f"{method} is not possible here: use {allowed}", headers={"allow": allowed}
            )
        return Match(route, parameters)

    def allowed(self, path: str) -> str:
        """The methods that are possible at a path, for `Allow`; `HttpError` 404 if there are none."""
        return _listed(self._methods(path)[0])

    def _methods(self, path: str) -> tuple[dict[str, Route], Mapping[str, str]]:
        if fixed := self._fixed.get(path):
            return fixed, {}
        for pattern, methods in self._patterns:
            if found := pattern.fullmatch(path):
                return methods, {name: _unescaped(value) for name, value in found.groupdict().items()}
        raise HttpError(404, "no_such_route", "there is nothing at this path: see /docs for what there is")


def _listed(methods: Iterable[str]) -> str:
    named = {*methods, "OPTIONS"}
    return ", ".join(sorted(named | {"HEAD"} if "GET" in named else named))


def _unescaped(value: str) -> str:
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise HttpError(404, "no_such_route", "the path is not UTF-8") from None


def _segment(part: str) -> str:
    return f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part)


def _check(route: Route) -> None:
    if not isinstance(route.scope, Scope) and route.scope not in (PUBLIC, ANY_CALLER):
        raise Misconfigured(f"the route {route.method} {route.path} declares no scope: say which, PUBLIC or ANY_CALLER")
    if not route.answers:
        raise Misconfigured(f"the route {route.method} {route.path} declares no answer")
