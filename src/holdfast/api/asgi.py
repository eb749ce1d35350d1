"""Between ASGI and our requests and answers: for whoever mounts the service in an application of their own."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import quote

from holdfast.api.headers import Headers
from holdfast.api.http import ClientGone, Incoming

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def incoming(scope: Scope, receive: Receive) -> Incoming:
    """A request. Mounted below another application, the path that counts is what follows after it."""
    raw: str = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
    headers: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        # Neither of two values is overlooked.
        headers[name] = headers[name] + b", " + value if name in headers else value
    client = scope.get("client")
    return Incoming(
        scope["method"],
        raw.removeprefix(scope.get("root_path", "")) or "/",
        scope.get("query_string", b""),
        headers,
        client[0] if client else "",
        _Client(receive),
    )


class _Client:
    """Sends the rest of a request in messages."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def more(self) -> bytes:
        """See `Source`."""
        while not self._ended:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            self._ended = not message.get("more_body")
            part: bytes = message.get("body", b"")
            if part:
                return part
        return b""

    async def gone(self) -> None:
        """See `Source`."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


class Outgoing:
    """Sends an answer in messages."""

    def __init__(self, send: Send) -> None:
        self._send = send

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """An answer whose body is known."""
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, headers: Headers) -> None:
        """See `Outlet`."""
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def chunk(self, part: bytes) -> None:
        """See `Outlet`."""
        await self._send({"type": "http.response.body", "body": part, "more_body": True})

    async def end(self) -> None:
        """See `Outlet`."""
        await self._send({"type": "http.response.body", "body": b""})


async def lifespan(receive: Receive, send: Send) -> None:
    """Whoever serves us starts and stops the engine; here is nothing to do."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
