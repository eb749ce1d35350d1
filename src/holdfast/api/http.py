"""Requests and responses as routes see them, independent of our server and of ASGI."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

from holdfast.api.headers import request_id
from holdfast.api.offload import LARGE_BODY_BYTES
from holdfast.wire.problems import HttpError

MAX_QUERY_BYTES = 8_192
_JSON_TYPE = re.compile(rb"\s*application/json\s*(;\s*charset\s*=\s*\"?utf-8\"?\s*)?", re.IGNORECASE)


class HttpResponse(NamedTuple):
    """Complete response; `value` is a struct to encode as JSON, or raw bytes."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = {}
    media_type: str = "application/json"


class Chunks(Protocol):
    """Chunks of a streamed response; always closed, even if never iterated."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the chunks."""

    async def aclose(self) -> None:
        """Stop producing chunks."""


class Stream(NamedTuple):
    """Streamed response; chunks are sent until they end or the client disconnects."""

    chunks: Chunks
    media_type: str
    headers: Mapping[str, str] = {}
    cut: asyncio.Future[None] | None = None
    """Future that is done when the stream must end soon, even if the client does not read."""


class BodySource(Protocol):
    """Source of a request's body and of the client's disconnect."""

    __slots__ = ()

    async def more(self) -> bytes:
        """Return the next part of the body; empty at its end. Raises `ClientGone`."""

    async def wait_disconnected(self) -> None:
        """Wait until the client has disconnected."""


class HttpRequest:
    """Request whose head is parsed and whose body is read on demand."""

    __slots__ = (
        "_source",
        "address",
        "body",
        "caller",
        "headers",
        "id",
        "method",
        "parse_seconds",
        "path",
        "query_string",
        "route",
        "started_at",
    )

    def __init__(  # noqa: PLR0917 - the fields of a request head, in order
        self,
        method: str,
        path: str,
        query_string: bytes,
        headers: Mapping[bytes, bytes],
        address: str,
        source: BodySource,
    ) -> None:
        self.started_at = time.perf_counter()
        self.method = method
        self.path = path
        """Percent-encoded, so that a name that contains a slash stays one segment."""
        self.query_string = query_string
        self.headers = headers
        """Values by lower-case name; repeated headers are joined with a comma."""
        self.address = address
        """Peer address; empty if unknown."""
        self._source = source
        self.body: bytes | None = None
        """Complete body, if it has already arrived."""
        self.parse_seconds = 0.0
        """Time that it took to parse the body."""
        self.id: bytes = request_id(headers.get(b"x-request-id"))
        self.caller: str = ""
        """Name of the authenticated caller; empty before authentication."""
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
                414,
                "query_too_long",
                f"the query string has {len(raw):,} bytes, and {MAX_QUERY_BYTES:,} are allowed: use fewer parameters",
            )
        parameters: dict[str, str | list[str]] = {}
        try:
            pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
        except ValueError as error:
            raise HttpError(
                400, "malformed_query", f"cannot parse the query string ({error}): percent-encode it as UTF-8"
            ) from None
        for name, value in pairs:
            earlier = parameters.get(name)
            if earlier is None:
                parameters[name] = value
            elif isinstance(earlier, list):
                earlier.append(value)
            else:
                parameters[name] = [earlier, value]
        return parameters

    @property
    def has_large_body(self) -> bool:
        """True if the body is large, or chunked and so of unknown size."""
        if b"transfer-encoding" in self.headers:
            return True
        length = self.headers.get(b"content-length", b"0")
        return len(length) >= 6 and (not length.isdigit() or int(length[:20]) >= LARGE_BODY_BYTES)

    async def json_body(self, max_bytes: int, *, any_media_type: bool = False) -> bytes:
        """Read the body; reject wrong media types and oversized bodies early."""
        headers = self.headers
        media_type = headers.get(b"content-type", b"")
        if media_type != b"application/json" and not any_media_type and not _JSON_TYPE.fullmatch(media_type):
            if not media_type and self._is_empty():
                return b""  # the route's type decides whether an empty body is valid
            raise HttpError(415, "not_json", "the body is not JSON: send JSON with Content-Type: application/json")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise HttpError(
                415, "encoded_body", "compressed bodies are not supported: remove the Content-Encoding header"
            )
        if self.body is not None:
            if len(self.body) > max_bytes:
                raise _too_large(max_bytes)
            return self.body
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced[:20]) > max_bytes:
            raise _too_large(max_bytes)
        body = bytearray()
        while part := await self._source.more():
            body += part
            if len(body) > max_bytes:
                raise _too_large(max_bytes)
        return bytes(body)

    def _is_empty(self) -> bool:
        return self.headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in self.headers

    async def wait_disconnected(self) -> None:
        """Wait until the client has disconnected."""
        await self._source.wait_disconnected()


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


def _too_large(max_bytes: int) -> HttpError:
    return HttpError(413, "too_large", f"the body is larger than {max_bytes:,} bytes: split it into several requests")
