"""The service: every request is routed, authenticated, permitted, read, handled and answered, in this order."""

import asyncio
import logging
import re
import time
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from holdfast.api import asgi
from holdfast.api.headers import REQUEST_ID, Cors, Headers, headers_of
from holdfast.api.http import Answer, ClientGone, Incoming, Stream
from holdfast.api.request_log import LOG, log_fault, shown_path
from holdfast.api.routing import ANY_CALLER, PUBLIC, Call, Route
from holdfast.api.server.streaming import pump
from holdfast.api.service import Service
from holdfast.errors import HoldfastError, Invalid
from holdfast.model.access import Caller
from holdfast.policy.access import permit
from holdfast.wire import json
from holdfast.wire.problems import MEDIA_TYPE, TITLES, Problem, problem_of

_ENCODE = msgspec.json.Encoder().encode

NOBODY = Caller("", frozenset(), "nobody")


class Reply(NamedTuple):
    """An answer, its body as it is sent."""

    answer: Answer
    body: bytes


class Api:
    """An ASGI application, which can be mounted in another one; and what `holdfast serve` puts behind a socket."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.requests = service.requests
        self._base = service.rules.base_path
        self.cors = Cors(service.rules.cors_origins)
        self._access_level = logging.INFO if service.rules.access_log else logging.DEBUG

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """One request below somebody else's server."""
        if scope["type"] == "lifespan":
            await asgi.lifespan(receive, send)
            return
        if scope["type"] != "http":  # a websocket: there is none
            await send({"type": "websocket.close", "code": 1000})
            return
        request, out = asgi.incoming(scope, receive), asgi.Outgoing(send)
        reply = await self.respond(request)
        if isinstance(reply, Stream):
            self.note(request, 200)
            await pump(reply, self.headers(reply, request), request, out)
        elif reply is not None:
            (answer, body), headers = reply, self.headers(reply.answer, request)
            if body or answer.status not in (204, 304):
                headers.append((b"content-length", b"%d" % len(body)))
            await out.whole(answer.status, headers, b"" if request.method == "HEAD" else body)
            self.note(request, answer.status)

    async def respond(self, request: Incoming) -> Reply | Stream | None:
        """What a request is answered with; every error is an answer too. None: there is nobody to answer."""
        try:
            answer = await self._handle(request)
            return answer if isinstance(answer, Stream) else encoded(answer)
        except HoldfastError as error:
            problem, headers = problem_of(error)
            if problem.status >= 500:
                log_fault(logging.WARNING, ":", request, error)
            return encoded(Answer(problem, problem.status, headers, MEDIA_TYPE))
        except ClientGone:
            return None
        except asyncio.CancelledError:
            if not self.service.stopping.is_set():
                raise
            return refusal(503, "stopping", "this node stops, and the request took too long: ask again, what it did "
                                            "is not known")  # fmt: skip
        except Exception as error:  # noqa: BLE001 - the last line of every request
            log_fault(logging.ERROR, " failed:", request, error, where=True)
            told = request.id.decode()
            detail = f"something went wrong here: it was logged as request {told}; trying again may help"
            return encoded(Answer(Problem(TITLES[500], 500, "internal", detail), 500, {}, MEDIA_TYPE))

    async def _handle(self, request: Incoming) -> Answer | Stream:
        if self._base and request.path.startswith(self._base):
            if request.path == self._base:  # the addresses in the page are relative: they need the slash
                return Answer(None, 308, {"location": f"{self._base}/"})
            if request.path[len(self._base)] == "/":
                request.path = request.path[len(self._base) :]
        service = self.service
        if request.method == "OPTIONS":
            return Answer(None, 204, {"allow": service.routes.allowed(request.path)})
        route, path = service.routes.find(request.method, request.path)
        request.route = route.path
        caller = NOBODY
        if route.scope != PUBLIC:
            caller = await service.auth.caller(request)
            if route.scope != ANY_CALLER:
                permit(caller, route.scope)
        query = _query(request, route)
        body = None
        if route.body is not None:
            body = json.read(await request.json_body(route.body_limit), route.body)
        return await route.handler(Call(service, caller, path, body, query, request))

    def headers(self, answer: Answer | Stream, request: Incoming) -> Headers:
        """All headers of an answer but its length."""
        return [
            *headers_of(answer.media_type, answer.headers),
            (REQUEST_ID, request.id),
            *self.cors.headers(request.method, request.headers.get(b"origin")),
        ]

    def note(self, request: Incoming, status: int) -> None:
        """A request was answered: count it, and log it if asked to."""
        took = time.perf_counter() - request.began
        self.requests.note(request.method, request.route, status, took)
        level = logging.INFO if status >= 500 else self._access_level
        if LOG.isEnabledFor(level):
            path = shown_path(request)
            fields = {
                "request_id": request.id.decode(),
                "method": request.method,
                "path": path,
                "status": status,
                "ms": round(took * 1_000, 1),
            }
            LOG.log(level, "%s %s %d in %.1f ms", request.method, path, status, took * 1_000, extra=fields)


def encoded(answer: Answer) -> Reply:
    """An answer as it is sent."""
    value = answer.value
    return Reply(answer, value if isinstance(value, bytes) else b"" if value is None else _ENCODE(value))


def refusal(status: int, code: str, detail: str) -> Reply:
    """The answer of a node that cannot answer now."""
    return encoded(Answer(Problem(TITLES[status], status, code, detail), status, {"retry-after": "1"}, MEDIA_TYPE))


def _query(request: Incoming, route: Route) -> Any:
    if route.query is None:
        return json.convert(request.query(), _NoQuery) if request.query_string else None
    found = request.query()
    asked = json.convert(found, route.query, strict=False)
    # Read leniently, for numbers come as text; but what would mean something else than was written is refused.
    for name, text in found.items():
        value = getattr(asked, name)
        if value is None:
            raise Invalid(f"{name}: there is no null in a query: leave it out", pointer=f"/{name}")
        if isinstance(value, datetime) and not _YEAR.match(str(text)):  # a number of seconds, or of what else
            detail = f"{name}: give a time as RFC 3339, with offset, such as 2030-01-31T12:00:00Z"
            raise Invalid(detail, pointer=f"/{name}")
    return asked


_YEAR = re.compile(r"\d{4}-", re.ASCII)


class _NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A route that takes no parameters says so, rather than ignore them."""
