"""Requests and answers, on bare ASGI: what every route needs and nothing more."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, quote

from holdfast.api.headers import request_id
from holdfast.wire.problems import HttpError

ASGIScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST_QUERY = 8_192
_JSON_TYPE = re.compile(rb"\s*application/json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?", re.IGNORECASE)


class Answer(NamedTuple):
    """An answer whose body is known. `value` is a struct to be written as JSON, or bytes as they are."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = {}
    media_type: str = "application/json"


class Chunks(Protocol):
    """Parts of an answer, as they come. Closed in any case, also if none was asked for."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """One after the other."""

    async def aclose(self) -> None:
        """No more are wanted."""


class Stream(NamedTuple):
    """An answer that goes on: chunks as they come, until the iterator or the client ends."""

    chunks: Chunks
    media_type: str
    headers: Mapping[str, str] = {}
    cut: asyncio.Future[None] | None = None
    """Done when it must end soon: a client that does not even read the end is left."""


class Incoming:
    """A request as it arrived: its head at once, its body when asked for."""

    __slots__ = ("_receive", "headers", "id", "method", "path", "route", "scope")

    def __init__(self, scope: ASGIScope, receive: Receive) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        # Still escaped, so that a name with a slash in it stays one segment. Mounted below another application, the
        # path that counts is what follows after it.
        raw: str = (scope.get("raw_path") or quote(scope["path"]).encode()).decode("latin-1")
        self.path: str = raw.removeprefix(scope.get("root_path", "")) or "/"
        self._receive = receive
        self.headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            # A header that stands twice is two values: joined, as lists are written, so that neither is overlooked.
            self.headers[name] = self.headers[name] + b", " + value if name in self.headers else value
        self.id: bytes = request_id(self.headers.get(b"x-request-id"))
        self.route: str = ""
        """The path of its route, as the table has it; empty while, or if, there is none."""

    def header(self, name: str) -> str | None:
        """A header, by its lower-case name."""
        value = self.headers.get(name.encode("ascii"))
        return None if value is None else value.decode("latin-1")

    @property
    def address(self) -> str:
        """Where it came from."""
        client = self.scope.get("client")
        return client[0] if client else ""

    def query(self) -> dict[str, str | list[str]]:
        """The parameters; one that stands more than once is a list."""
        raw: bytes = self.scope.get("query_string", b"")
        if not raw:
            return {}
        if len(raw) > LARGEST_QUERY:
            raise HttpError(414, "query_too_long", f"the query has {len(raw):,} bytes; at most {LARGEST_QUERY:,}")
        found: dict[str, str | list[str]] = {}
        try:
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError as error:
            raise HttpError(400, "malformed_query", f"the query cannot be read: {error}") from None
        for name, value in pairs:
            before = found.get(name)
            if before is None:
                found[name] = value
            elif isinstance(before, list):
                before.append(value)
            else:
                found[name] = [before, value]
        return found

    async def json_body(self, most: int) -> bytes:
        """The body, refused before it is read whole when it is too large, or no JSON by its own account."""
        kind = self.headers.get(b"content-type", b"")
        if kind != b"application/json" and not _JSON_TYPE.fullmatch(kind):
            if not kind and self._is_empty():
                return b"{}"  # whether that will do is for the route's type to say
            raise HttpError(415, "not_json", "send JSON, with the header Content-Type: application/json")
        if self.headers.get(b"content-encoding", b"identity") != b"identity":
            raise HttpError(415, "encoded_body", "compressed bodies are not taken: leave Content-Encoding out")
        announced = self.headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced[:20]) > most:
            raise _too_large(most)
        message = await self._receive()
        if not message.get("more_body"):
            body: bytes = message.get("body", b"")
            if len(body) > most:
                raise _too_large(most)
            return body
        parts = bytearray()
        while True:
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts += message.get("body", b"")
            if len(parts) > most:
                raise _too_large(most)
            if not message.get("more_body"):
                return bytes(parts)
            message = await self._receive()

    def _is_empty(self) -> bool:
        return self.headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in self.headers

    async def disconnected(self) -> None:
        """Until the client is gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


class ClientGone(Exception):
    """The client hung up in the middle of its request: there is nobody to answer."""


def _too_large(most: int) -> HttpError:
    return HttpError(413, "too_large", f"the body may have at most {most:,} bytes: send less at once")
