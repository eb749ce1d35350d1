"""Route table: the source of routing, authorisation, OpenAPI and generated tests."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import unquote

from holdfast.api.http import HttpRequest, HttpResponse, Stream
from holdfast.errors import Misconfigured
from holdfast.model.access import Caller, Scope
from holdfast.wire.problems import HttpError

if TYPE_CHECKING:
    from holdfast.api.auth.authenticator import Authenticator
    from holdfast.api.service import Service

Body = TypeVar("Body")
QueryT = TypeVar("QueryT")

PUBLIC: Literal["public"] = "public"
"""Scope of a route without authentication; explicit, so that no route is public by omission."""

ANY_CALLER: Literal["any caller"] = "any caller"
"""Scope of a route open to every authenticated caller."""

MAX_BODY_BYTES = 1024 * 1024
MAX_BATCH_BODY_BYTES = 5 * 1024 * 1024


class RouteCall(NamedTuple, Generic[Body, QueryT]):
    """Arguments of a route handler: the validated request and its caller."""

    service: "Service"
    caller: Caller
    path: Mapping[str, str]
    body: Body
    query: QueryT
    request: HttpRequest


Handler = Callable[[RouteCall[Any, Any]], Awaitable[HttpResponse | Stream]]


Authenticate = Callable[["Authenticator", HttpRequest], Awaitable[Caller]]
"""Function that authenticates the caller of a request; raises `Unauthorized`."""


class Route(NamedTuple):
    """Entry of the route table."""

    method: Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
    path: str
    """`{name}` is a parameter that matches one segment."""
    scope: Scope | Literal["public", "any caller"]
    handler: Handler
    summary: str
    responses: Mapping[int, Any]
    """Body type by success status: None if empty, a string for a raw media type."""
    body: Any = None
    query: Any = None
    body_limit: int = MAX_BODY_BYTES
    tag: str = "jobs"
    headers: Mapping[str, str] = {}
    """Request headers it reads, with descriptions."""
    response_headers: Mapping[int, Mapping[str, str]] = {}
    """Response headers by status, with descriptions."""
    error_statuses: tuple[int, ...] = ()
    """Error statuses in addition to those of every route."""
    described: bool = True
    """False for pages and files of browsers, which the OpenAPI document leaves out."""
    demo: bool = False
    """Available only in demo mode."""
    tenant_admin: bool = False
    """Open to administrators of a tenant; the handler restricts them to it."""
    long_poll: bool = False
    """Requests may wait for long, so they are counted apart from other requests of their key."""

    renewal: bool = False
    """Requests keep a lease alive, so other requests of their key do not delay them."""

    large_page: bool = False
    """Responses may have 1 MiB, so a key has only a few such requests in progress."""
    any_media_type: bool = False
    """The body is JSON whatever its media type, as `curl -d` sends it without a header."""
    authenticate: "Authenticate | None" = None
    """Authentication in place of the node's own."""

    @property
    def name(self) -> str:
        """Operation id: the handler's name."""
        return self.handler.__name__

    @property
    def parameters(self) -> list[str]:
        """Names of the path parameters."""
        return re.findall(r"\{(\w+)\}", self.path)


class Match(NamedTuple):
    """Matched route and its path parameters."""

    route: Route
    path: Mapping[str, str]


class Routes:
    """Route lookup; constant time for paths without parameters."""

    def __init__(self, table: Iterable[Route], undocumented: Iterable[Route] = ()) -> None:
        self.table = tuple(table)
        """Routes of the API description."""
        self.pages: dict[str, bytes] = {}
        """Pages rendered from the table, cached."""
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: list[tuple[re.Pattern[str], dict[str, Route]]] = []
        by_path: dict[str, dict[str, Route]] = {}
        for route in (*self.table, *undocumented):
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
        """Return the matching route. Raises `HttpError` 404 or 405."""
        methods, parameters = self._methods(path)
        route = methods.get(method) or (methods.get("GET") if method == "HEAD" else None)
        if route is None:
            allowed = _allow_header(methods)
            raise HttpError(
                405, "method_not_allowed", f"{method} is not allowed here: use {allowed}", headers={"allow": allowed}
            )
        return Match(route, parameters)

    def allowed(self, path: str) -> str:
        """Return the value of `Allow` for a path. Raises `HttpError` 404 if no route matches."""
        return _allow_header(self._methods(path)[0])

    def _methods(self, path: str) -> tuple[dict[str, Route], Mapping[str, str]]:
        if fixed := self._fixed.get(path):
            return fixed, {}
        for pattern, methods in self._patterns:
            if match := pattern.fullmatch(path):
                return methods, {name: _unescaped(value) for name, value in match.groupdict().items()}
        raise HttpError(404, "no_such_route", "no such route; see /docs")


def _allow_header(methods: Iterable[str]) -> str:
    allowed = {*methods, "OPTIONS"}
    return ", ".join(sorted(allowed | {"HEAD"} if "GET" in allowed else allowed))


def _unescaped(value: str) -> str:
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise HttpError(404, "no_such_route", "no such route: the path is not UTF-8; see /docs") from None


def _segment(part: str) -> str:
    return f"(?P<{part[1:-1]}>[^/]+)" if part.startswith("{") else re.escape(part)


def _check(route: Route) -> None:
    if not isinstance(route.scope, Scope) and route.scope not in (PUBLIC, ANY_CALLER):
        raise Misconfigured(f"the route {route.method} {route.path} declares no scope: give one, PUBLIC or ANY_CALLER")
    if not route.responses:
        raise Misconfigured(f"the route {route.method} {route.path} declares no response: list its statuses")
