"""ASGI application: route, authenticate, authorise, parse, handle, respond, in this order."""

import asyncio
import logging
import re
import time
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from holdfast.api import asgi
from holdfast.api.headers import REQUEST_ID, Cors, Headers, headers_of
from holdfast.api.http import ClientGone, HttpRequest, HttpResponse, Stream
from holdfast.api.memory import MemoryTrimmer
from holdfast.api.offload import read_body
from holdfast.api.request_log import LOG, log_error, loggable_path
from holdfast.api.request_slots import LARGE_BODY_WEIGHT
from holdfast.api.routing import ANY_CALLER, PUBLIC, Route, RouteCall
from holdfast.api.server.streaming import send_stream
from holdfast.api.service import Service
from holdfast.errors import HoldfastError, Invalid
from holdfast.model.access import Caller
from holdfast.policy.access import permit
from holdfast.wire import json
from holdfast.wire.problems import MEDIA_TYPE, TITLES, Problem, problem_of

_ENCODE = msgspec.json.Encoder().encode

ANONYMOUS = Caller("", frozenset(), "anonymous")


class EncodedResponse(NamedTuple):
    """Response whose body is encoded."""

    head: HttpResponse
    """Status, headers and media type."""
    body: bytes


class Api:
    """ASGI application; `holdfast serve` runs it on its own HTTP server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.requests = service.requests
        self._base = service.rules.base_path
        self._trimmer = MemoryTrimmer()
        self.cors = Cors(service.rules.cors_origins)
        self._access_level = logging.INFO if service.rules.access_log else logging.DEBUG

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "lifespan":
            await asgi.lifespan(receive, send)
            return
        if scope["type"] != "http":  # websockets are not supported
            await send({"type": "websocket.close", "code": 1000})
            return
        request, writer = asgi.request_from_scope(scope, receive), asgi.AsgiWriter(send)
        response = await self.respond(request)
        if isinstance(response, Stream):
            self.record(request, 200)
            await send_stream(response, self.headers(response, request), request, writer)
        elif response is not None:
            (head, body), headers = response, self.headers(response.head, request)
            if body or head.status not in (204, 304):
                headers.append((b"content-length", b"%d" % len(body)))
            await writer.send_response(head.status, headers, b"" if request.method == "HEAD" else body)
            self.record(request, head.status)

    async def respond(self, request: HttpRequest) -> EncodedResponse | Stream | None:
        """Return the response, an error response included; None if the client has disconnected."""
        try:
            response = await self._handle(request)
            return response if isinstance(response, Stream) else encode_response(response)
        except HoldfastError as error:
            problem, headers = problem_of(error)
            if problem.status >= 500:
                log_error(logging.WARNING, ":", request, error)
            return encode_response(HttpResponse(problem, problem.status, headers, MEDIA_TYPE))
        except ClientGone:
            return None
        except asyncio.CancelledError:
            if not self.service.stopping.is_set():
                raise
            detail = "this node is shutting down before the request finished; its outcome is unknown: "
            return unavailable_response(503, "stopping", detail + "check it, or retry with the same Idempotency-Key")
        except Exception as error:  # noqa: BLE001 - last resort for every request
            log_error(logging.ERROR, " failed:", request, error, with_locations=True)
            request_id = request.id.decode()
            detail = f"internal error, logged with request id {request_id}: retry, or ask the operator to look it up"
            return encode_response(HttpResponse(Problem(TITLES[500], 500, "internal", detail), 500, {}, MEDIA_TYPE))

    async def _handle(self, request: HttpRequest) -> HttpResponse | Stream:
        if self._base and request.path.startswith(self._base):
            if request.path == self._base:  # the page uses relative URLs, which need the slash
                return HttpResponse(None, 308, {"location": f"{self._base}/"})
            if request.path[len(self._base)] == "/":
                request.path = request.path[len(self._base) :]
        service = self.service
        if request.method == "OPTIONS":
            return HttpResponse(None, 204, {"allow": service.routes.allowed(request.path)})
        route, path = service.routes.find(request.method, request.path)
        request.route = route.path
        caller = ANONYMOUS
        if route.scope != PUBLIC:
            if route.authenticate is None:
                caller = await service.auth.caller(request)
            else:
                caller = await route.authenticate(service.auth, request)
            request.caller = caller.name
            if route.scope != ANY_CALLER:
                permit(caller, route.scope, tenant_admin=route.tenant_admin)
        query = _query(request, route)
        call: RouteCall[Any, Any] = RouteCall(service, caller, path, None, query, request)
        if route.scope == PUBLIC:
            return await self._call(route, call)
        key = caller.key or caller.name
        if not route.long_poll:
            return await self._call_in_slot(route, call, key)
        service.long_polls.acquire_at_once(key)
        try:
            return await self._call(route, call)
        finally:
            service.long_polls.release(key, 1)

    async def _call_in_slot(self, route: Route, call: RouteCall[Any, Any], key: str) -> HttpResponse | Stream:
        """Call the handler as one of the concurrent requests of this key."""
        request, slots = call.request, call.service.renewals if route.renewal else call.service.slots
        is_large = request.has_large_body
        wanted = LARGE_BODY_WEIGHT if is_large else slots.large_page_weight if route.large_page else 1
        weight = await slots.acquire(key, wanted)
        try:
            if is_large:
                await slots.wait_after_refusals(key)
            return await self._call(route, call)
        except Invalid:
            if is_large:
                slots.refused(key, request.parse_seconds)
            raise
        finally:
            slots.release(key, weight)
            if is_large:
                self._trimmer.trim_soon()

    async def _call(self, route: Route, call: RouteCall[Any, Any]) -> HttpResponse | Stream:
        """Parse the body, a large one in a thread, and call the handler."""
        if route.body is not None:
            body = await call.request.json_body(route.body_limit, any_media_type=route.any_media_type)
            began = time.perf_counter()
            try:
                call = call._replace(body=await read_body(body, route.body))
            finally:
                call.request.parse_seconds = time.perf_counter() - began
            del body
        return await route.handler(call)

    def headers(self, response: HttpResponse | Stream, request: HttpRequest) -> Headers:
        """Return all headers of a response except its length."""
        return [
            *headers_of(response.media_type, response.headers),
            (REQUEST_ID, request.id),
            *self.cors.headers(request.method, request.headers.get(b"origin")),
        ]

    def record(self, request: HttpRequest, status: int) -> None:
        """Record a finished request in the metrics and the access log."""
        seconds = time.perf_counter() - request.started_at
        self.requests.record(request.method, request.route, status, seconds)
        level = logging.INFO if status >= 500 else self._access_level
        if LOG.isEnabledFor(level):
            path = loggable_path(request)
            fields = {
                "request_id": request.id.decode(),
                "method": request.method,
                "path": path,
                "status": status,
                "ms": round(seconds * 1_000, 1),
            }
            LOG.log(level, "%s %s %d in %.1f ms", request.method, path, status, seconds * 1_000, extra=fields)


def encode_response(response: HttpResponse) -> EncodedResponse:
    """Encode the body of a response."""
    value = response.value
    return EncodedResponse(response, value if isinstance(value, bytes) else b"" if value is None else _ENCODE(value))


def unavailable_response(status: int, code: str, detail: str) -> EncodedResponse:
    """Build a problem response with `Retry-After`."""
    return encode_response(
        HttpResponse(Problem(TITLES[status], status, code, detail), status, {"retry-after": "1"}, MEDIA_TYPE)
    )


def _query(request: HttpRequest, route: Route) -> Any:
    if route.query is None:
        return json.convert(request.query(), _NoQuery) if request.query_string else None
    parameters = request.query()
    query = json.convert(parameters, route.query, strict=False)
    # Lenient because numbers arrive as text; values that lenient parsing would reinterpret are rejected below.
    for name, text in parameters.items():
        value = getattr(query, name)
        if value is None:
            raise Invalid(f"{name}: a query parameter cannot be null; omit it", pointer=f"/{name}")
        if isinstance(value, datetime) and not _YEAR.match(str(text)):  # a bare number has no unit
            detail = f"{name}: give a time as RFC 3339, with offset, such as 2030-01-31T12:00:00Z"
            raise Invalid(detail, pointer=f"/{name}")
    return query


_YEAR = re.compile(r"\d{4}-", re.ASCII)


class _NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Query without parameters: any parameter is rejected."""
