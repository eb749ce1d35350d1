"""The service as an ASGI application. Every request is routed, authenticated, permitted, read, handled and answered."""

import asyncio
import logging
import re
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from holdfast.api.headers import NO_STORE, REQUEST_ID, SECURITY_HEADERS, USUAL_HEADERS, Cors, Headers
from holdfast.api.http import Answer, ASGIScope, ClientGone, Incoming, Receive, Send, Stream
from holdfast.api.service import Service
from holdfast.api.table import ANY_CALLER, PUBLIC, Call, Match, Route
from holdfast.errors import HoldfastError, Invalid
from holdfast.model.access import Caller
from holdfast.policy.access import permit
from holdfast.policy.redact import redact
from holdfast.wire import json
from holdfast.wire.problems import MEDIA_TYPE, TITLES, Problem, problem_of

_LOG = logging.getLogger("holdfast.api")
_ENCODE = msgspec.json.Encoder().encode

_LAST_WORDS = 2.0
"""Seconds that a client has to read the end of a stream that is cut."""

NOBODY = Caller("", frozenset(), "nobody")

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LONGEST_MESSAGE = 300
_MOST_FRAMES = 30


class Api:
    """An ASGI application; can be served by itself or mounted in another one."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.requests = service.requests
        self._cors = Cors(service.rules.cors_origins)
        self._access_level = logging.INFO if service.rules.access_log else logging.DEBUG

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """One connection."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(Incoming(scope, receive), send)
        else:  # a websocket: there is none
            await send({"type": "websocket.close", "code": 1000})

    async def crowded(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """The answer to everybody while there are more connections than this node takes."""
        request = Incoming(scope, receive)
        problem = Problem(TITLES[503], 503, "crowded", "this node has too many connections: try again in a moment")
        answer = Answer(problem, 503, {"retry-after": "1", "connection": "close"}, MEDIA_TYPE)
        await self._answered(answer, request, send, time.perf_counter())

    async def _serve(self, request: Incoming, send: Send) -> None:
        began = time.perf_counter()
        try:
            answer = await self.answer(request)
        except ClientGone:
            return
        except asyncio.CancelledError:
            if not self.service.stopping.is_set():
                raise
            detail = "this node stops, and the request took too long: ask again, what it did is not known"
            problem = Problem(TITLES[503], 503, "stopping", detail)
            answer = Answer(problem, 503, {"retry-after": "1"}, MEDIA_TYPE)
        await self._answered(answer, request, send, began)

    async def _answered(self, answer: Answer | Stream, request: Incoming, send: Send, began: float) -> None:
        origin = request.headers.get(b"origin")
        more = [(REQUEST_ID, request.id), *self._cors.headers(origin)]
        if request.method == "OPTIONS":
            more += self._cors.preflight(origin)
        if isinstance(answer, Stream):
            self._note(request, 200, began)
            await _send_stream(answer, more, request, send)
        else:
            await _send(answer, more, request, send)
            self._note(request, answer.status, began)

    def _note(self, request: Incoming, status: int, began: float) -> None:
        took = time.perf_counter() - began
        self.requests.note(request.method, request.route, status, took)
        level = logging.INFO if status >= 500 else self._access_level
        if _LOG.isEnabledFor(level):
            path = _shown_path(request)
            fields = {
                "request_id": request.id.decode(),
                "method": request.method,
                "path": path,
                "status": status,
                "ms": round(took * 1_000, 1),
            }
            _LOG.log(level, "%s %s %d in %.1f ms", request.method, path, status, took * 1_000, extra=fields)

    async def answer(self, request: Incoming) -> Answer | Stream:
        """What a request is answered with; every error is an answer too."""
        try:
            return await self._handle(request)
        except HoldfastError as error:
            problem, headers = problem_of(error)
            if problem.status >= 500:
                _LOG.warning(
                    "%s %s: %s: %s", request.method, _shown_path(request), type(error).__name__,
                    _message(error, request), extra={"request_id": request.id.decode()},
                )  # fmt: skip
            return Answer(problem, problem.status, headers, MEDIA_TYPE)
        except (asyncio.CancelledError, ClientGone):
            raise
        except Exception as error:  # noqa: BLE001 - the last line of every request
            # Without the traceback's own words: what exceptions say may be a payload.
            _LOG.error(
                "%s %s failed: %s [%s]", request.method, _shown_path(request), _message(error, request), _where(error),
                extra={"request_id": request.id.decode()},
            )  # fmt: skip
            told = request.id.decode()
            detail = f"something went wrong here: it was logged as request {told}; trying again may help"
            return Answer(Problem(TITLES[500], 500, "internal", detail), 500, {}, MEDIA_TYPE)

    async def _handle(self, request: Incoming) -> Answer | Stream:
        if request.method == "OPTIONS":
            return Answer(None, 204, {"allow": self.service.routes.allowed(request.path)})
        match = self.service.routes.find(request.method, request.path)
        request.route = match.route.path
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
    asked = json.convert(found, route.query, strict=False)
    for name in found:
        # Read leniently, the text `null` would be no value, and a filter that was given would be none.
        if getattr(asked, name) is None:
            raise Invalid(f"{name}: there is no null in a query: leave it out", pointer=f"/{name}")
    return asked


class _NoQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A route that takes no parameters says so, rather than ignore them."""


async def _send(answer: Answer, more: Headers, request: Incoming, send: Send) -> None:
    status = answer.status
    body = answer.value if isinstance(answer.value, bytes) else b"" if answer.value is None else _ENCODE(answer.value)
    headers = _headers(answer)
    headers += more
    if body or status not in (204, 304):
        headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else body})


async def _send_stream(answer: Stream, more: Headers, request: Incoming, send: Send) -> None:
    """Send chunks until they end or the client is gone, whichever comes first."""

    async def pump() -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _headers(answer) + more})
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
                _LOG.warning(
                    "%s %s: the stream ended by %s: %s", request.method, _shown_path(request), type(result).__name__,
                    _message(result, request), extra={"request_id": request.id.decode()},
                )  # fmt: skip


def _headers(answer: Answer | Stream) -> Headers:
    if not answer.headers:
        return [(b"content-type", answer.media_type.encode("ascii")), *USUAL_HEADERS]
    headers = [(b"content-type", answer.media_type.encode("ascii")), *SECURITY_HEADERS]
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
    if "cache-control" not in answer.headers:
        headers.append(NO_STORE)
    return headers


def _shown_path(request: Incoming) -> str:
    """The path for the log: of what a client wrote into it, only what is an id and surely no secret."""
    if "{" not in request.route:
        return request.route or "(no route)"
    given = request.path.split("/")
    parts = zip(request.route.split("/"), given, strict=True)
    return "/".join(own if not own.startswith("{") or not _UUID.fullmatch(told) else told for own, told in parts)


def _message(error: BaseException, request: Incoming) -> str:
    """What an exception says, as far as a log may: its first line, shortened, without secrets of this request."""
    text = (str(error).splitlines() or [""])[0]
    for name in (b"authorization", b"cookie"):
        secret = request.headers.get(name, b"").decode("latin-1").rpartition(" ")[2]
        if secret:
            text = text.replace(secret, "***")
    text = redact(text)[:_LONGEST_MESSAGE]
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def _where(error: BaseException) -> str:
    """Where an exception came from, and by what: types and places, no values."""
    told: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(told) < _MOST_FRAMES:
        frames = [f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(cause.__traceback__)]
        told.append(f"{type(cause).__name__} at {' > '.join(frames[-_MOST_FRAMES:])}")
        cause = cause.__cause__ or cause.__context__
    return "; by ".join(told)


async def _lifespan(receive: Receive, send: Send) -> None:
    """Whoever serves us starts and stops the engine; here is nothing to do."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
