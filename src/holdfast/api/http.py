"""Requests and responses as routes see them, independent of our server and of ASGI."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

from holdfast.api.headers import request_id
from holdfast.wire.problems import HttpError

MAX_QUERY_BYTES = 8_192
_JSON_TYPE = re.compile(rb"\s*application/json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?", re.IGNORECASE)


class HttpResponse(NamedTuple):
    """A complete response. `value` is a struct to encode as JSON, or raw bytes."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = {}
    media_type: str = "application/json"


class Chunks(Protocol):
    """Chunks of a streamed response. Always closed, even if never iterated."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the chunks."""

    async def aclose(self) -> None:
        """Stop producing chunks."""


class Stream(NamedTuple):
    """A streamed response: chunks are sent until the iterator ends or the client disconnects."""

    chunks: Chunks
    media_type: str
    headers: Mapping[str, str] = {}
    cut: asyncio.Future[None] | None = None
    """Done when the stream must end soon, even if the client does not read its end."""


class BodySource(Protocol):
    """Source of a request's body and of the client's disconnect."""

    async def more(self) -> bytes:
        """Return the next part of the body; empty at its end. Raises `ClientGone`."""

    async def gone(self) -> None:
        """Wait until the client has disconnected."""


class HttpRequest:
    """A request: its head is parsed, its body is read on demand."""

    __slots__ = ("_source", "address", "began", "headers", "id", "method", "path", "query_string", "route", "whole")

    def __init__(  # noqa: PLR0917 - the fields of a request head, in order
        self,
        method: str,
        path: str,
        query_string: bytes,
        headers: Mapping[bytes, bytes],
        address: str,
        source: BodySource,
    ) -> None:
        self.began = time.perf_counter()
        self.method = method
        self.path = path
        """Percent-encoded, so that a name that contains a slash stays one segment."""
        self.query_string = query_string
        self.headers = headers
        """By lower-case name. Repeated headers are joined with a comma."""
        self.address = address
        """Peer address; empty if unknown."""
        self._source = source
        self.whole: bytes | None = None
        """The complete body, if it has already arrived."""
        self.id: bytes = request_id(headers.get(b"x-request-id"))
        self.route: str = ""
        """Path template of the matched route; empty if none matched."""

    def header(self, name: str) -> str | None:
        """Return a header by its lower-case name."""
        value = self.headers.get(name.encode("ascii"))
        return None if value is None else value.decode("latin-1")

    def query(self) -> dict[str, str | list[str]]:
        """Return the query parameters; a repeated one is a list."""
        raw = self.query_string
        if not raw:
            return {}
        if len(raw) > MAX_QUERY_BYTES:
            raise HttpError(
                414, "query_too_long", f"the query string has {len(raw):,} bytes, more than {MAX_QUERY_BYTES:,}"
            )
        found: dict[str, str | list[str]] = {}
        try:
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError as error:
            raise HttpError(400, "malformed_query", f"cannot parse the query string: {error}") from None
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
        """Read the body. Rejects wrong media types and oversized bodies before reading them whole."""
        headers = self.headers
        kind = headers.get(b"content-type", b"")
        if kind != b"application/json" and not _JSON_TYPE.fullmatch(kind):
            if not kind and self._is_empty():
                return b"{}"  # the route's type decides whether an empty body is valid
            raise HttpError(415, "not_json", "send JSON, with the header Content-Type: application/json")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise HttpError(
                415, "encoded_body", "compressed bodies are not supported: remove the Content-Encoding header"
            )
        if self.whole is not None:
            if len(self.whole) > most:
                raise _too_large(most)
            return self.whole
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced[:20]) > most:
            raise _too_large(most)
        body = bytearray()
        while part := await self._source.more():
            body += part
            if len(body) > most:
                raise _too_large(most)
        return bytes(body)

    def _is_empty(self) -> bool:
        return self.headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in self.headers

    async def disconnected(self) -> None:
        """Wait until the client has disconnected."""
        await self._source.gone()


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


def _too_large(most: int) -> HttpError:
    return HttpError(413, "too_large", f"the body is larger than {most:,} bytes: split it into several requests")
