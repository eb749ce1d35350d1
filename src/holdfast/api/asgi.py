"""Adapter between ASGI messages and our requests and responses."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from holdfast.api.headers import Headers
from holdfast.api.http import BodySource, ClientGone, HttpRequest
from holdfast.api.server.streaming import StreamWriter

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def request_from_scope(scope: Scope, receive: Receive) -> HttpRequest:
    """Build a request; the path is relative to `root_path` when the application is mounted."""
    raw: str = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        # Repeated headers are joined so that no value is ignored.
        headers[name] = headers[name] + b", " + value if name in headers else value
    client = scope.get("client")
    return HttpRequest(
        scope["method"],
        raw.removeprefix(scope.get("root_path", "")) or "/",
        scope.get("query_string", b""),
        headers,
        client[0] if client else "",
        _AsgiBody(receive),
    )


class _AsgiBody(BodySource):
    """Body and disconnect of a request, read from ASGI messages."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def more(self) -> bytes:
        while not self._ended:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            self._ended = not message.get("more_body")
            part: bytes = message.get("body", b"")
            if part:
                return part
        return b""

    async def wait_disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


class AsgiWriter(StreamWriter):
    """Writer that sends a response as ASGI messages."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def send_response(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a complete response."""
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def chunk(self, part: bytes) -> None:
        await self._send({"type": "http.response.body", "body": part, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})


async def lifespan(receive: Receive, send: Send) -> None:
    """Acknowledge lifespan events; the caller starts and stops the engine."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
