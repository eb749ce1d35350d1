"""The service as an ASGI application. Every request is routed, authenticated, permitted, read, handled and answered."""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.api.http import Answer, ASGIScope, ClientGone, Incoming, Receive, Send, Stream
from holdfast.api.service import Service
from holdfast.api.table import ANY_CALLER, PUBLIC, Call, Match, Route
from holdfast.errors import HoldfastError
from holdfast.model.access import Caller
from holdfast.policy.access import permit
from holdfast.wire import json
from holdfast.wire.problems import MEDIA_TYPE, TITLES, Problem, problem_of

_LOG = logging.getLogger("holdfast.api")
_ENCODE = msgspec.json.Encoder().encode

_LAST_WORDS = 2.0
"""Seconds that a client has to read the end of a stream that is cut."""

NOBODY = Caller("", frozenset(), "nobody")

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        (
            b"default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
            b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
    ),
)
_NO_STORE = (b"cache-control", b"no-store")
_USUAL_HEADERS = (*SECURITY_HEADERS, _NO_STORE)


class Api:
    """An ASGI application; can be served by itself or mounted in another one."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(Incoming(scope, receive), send)
        else:  # a websocket: there is none
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, request: Incoming, send: Send) -> None:
        began = time.perf_counter()
        try:
            answer = await self.answer(request)
        except ClientGone:
            return
        status = await _send(answer, request, send)
        _LOG.debug("%s %s %d %.1f ms", request.method, request.path, status, (time.perf_counter() - began) * 1_000)

    async def answer(self, request: Incoming) -> Answer | Stream:
        """What a request is answered with; every error is an answer too."""
        try:
            return await self._handle(request)
        except HoldfastError as error:
            problem, headers = problem_of(error)
            if problem.status >= 500:
                _LOG.warning("%s %s: %s: %s", request.method, request.path, type(error).__name__, error)
            return Answer(problem, problem.status, headers, MEDIA_TYPE)
        except (asyncio.CancelledError, ClientGone):
            raise
        except Exception:  # noqa: BLE001 - the last line of every request
            _LOG.exception("%s %s failed", request.method, request.path)
            detail = "something went wrong here: it was logged; trying again may help"
            return Answer(Problem(TITLES[500], 500, "internal", detail), 500, {}, MEDIA_TYPE)

    async def _handle(self, request: Incoming) -> Answer | Stream:
        match = self.service.routes.find(request.method, request.path)
        caller = await self._permitted(match.route, request)
        return await match.route.handler(await self._call(match, caller, request))

    async def _permitted(self, route: Route, request: Incoming) -> Caller:
        if route.scope == PUBLIC:
            return NOBODY
        caller = await self.service.auth.caller(request)
        if route.scope != ANY_CALLER:
            permit(caller, route.scope)
        return caller

    async def _call(self, match: Match, caller: Caller, request: Incoming) -> Call[Any, Any]:
        route = match.route
        query = _query(request.query(), route)
        body = None
        if route.body is not None:
            body = json.read(await request.json_body(route.body_limit), route.body)
        return Call(self.service, caller, match.path, body, query, request)


def _query(found: Mapping[str, Any], route: Route) -> Any:
    if route.query is None:
        return json.convert(found, _NoQuery)
    return json.convert(found, route.query, strict=False)


class _NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A route that takes no parameters says so, rather than ignore them."""


async def _send(answer: Answer | Stream, request: Incoming, send: Send) -> int:
    if isinstance(answer, Stream):
        return await _send_stream(answer, request, send)
    status = answer.status
    body = answer.value if isinstance(answer.value, bytes) else b"" if answer.value is None else _ENCODE(answer.value)
    headers = _headers(answer)
    if body or status not in (204, 304):
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})
    return status


async def _send_stream(answer: Stream, request: Incoming, send: Send) -> int:
    """Send chunks until they end or the client is gone, whichever comes first."""

    async def pump() -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _headers(answer)})
        async for chunk in answer.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    pumping = asyncio.ensure_future(pump())
    leaving = asyncio.ensure_future(request.disconnected())
    ends = (pumping, leaving) if answer.cut is None else (pumping, leaving, answer.cut)
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if not (pumping.done() or leaving.done()):
            await asyncio.wait((pumping, leaving), timeout=_LAST_WORDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pumping, leaving):
            task.cancel()
        results = await asyncio.gather(pumping, leaving, return_exceptions=True)
        await answer.chunks.aclose()
        for result in results:
            if isinstance(result, Exception):
                _LOG.warning("%s %s: the stream ended by %r", request.method, request.path, result)
    return 200


def _headers(answer: Answer | Stream) -> list[tuple[bytes, bytes]]:
    if not answer.headers:
        return [(b"content-type", answer.media_type.encode("ascii")), *_USUAL_HEADERS]
    headers = [(b"content-type", answer.media_type.encode("ascii")), *SECURITY_HEADERS]
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
    if "cache-control" not in answer.headers:
        headers.append(_NO_STORE)
    return headers


async def _lifespan(receive: Receive, send: Send) -> None:
    """Whoever serves us starts and stops the engine; here is nothing to do."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
