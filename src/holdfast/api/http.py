"""Requests and answers, as routes see them: the same on a socket of ours and below another application."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl

from holdfast.api.headers import request_id
from holdfast.wire.problems import HttpError

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


class Source(Protocol):
    """Whoever sends a request: where the rest of it comes from."""

    async def more(self) -> bytes:
        """The next part of the body; empty at its end. Raises `ClientGone`."""

    async def gone(self) -> None:
        """Until there is nobody to answer any more."""


class Incoming:
    """A request as it arrived: its head at once, its body when asked for."""

    __slots__ = ("_source", "address", "began", "headers", "id", "method", "path", "query_string", "route", "whole")

    def __init__(  # noqa: PLR0917 - the parts of a head, in its order
        self, method: str, path: str, query_string: bytes, headers: Mapping[bytes, bytes], address: str, source: Source
    ) -> None:
        self.began = time.perf_counter()
        self.method = method
        self.path = path
        """Still escaped, so that a name with a slash in it stays one segment."""
        self.query_string = query_string
        self.headers = headers
        """By names in small letters. One that stands twice is both values, joined as lists are written."""
        self.address = address
        """Where it came from; empty if nobody knows."""
        self._source = source
        self.whole: bytes | None = None
        """The body, if it is there already."""
        self.id: bytes = request_id(headers.get(b"x-request-id"))
        self.route: str = ""
        """The path of its route, as the table has it; empty while, or if, there is none."""

    def header(self, name: str) -> str | None:
        """A header, by its lower-case name."""
        value = self.headers.get(name.encode("ascii"))
        return None if value is None else value.decode("latin-1")

    def query(self) -> dict[str, str | list[str]]:
        """The parameters; one that stands more than once is a list."""
        raw = self.query_string
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
        headers = self.headers
        kind = headers.get(b"content-type", b"")
        if kind != b"application/json" and not _JSON_TYPE.fullmatch(kind):
            if not kind and self._is_empty():
                return b"{}"  # whether that will do is for the route's type to say
            raise HttpError(415, "not_json", "send JSON, with the header Content-Type: application/json")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise HttpError(415, "encoded_body", "compressed bodies are not taken: leave Content-Encoding out")
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
        """Until the client is gone."""
        await self._source.gone()


class ClientGone(Exception):
    """The client hung up in the middle of its request: there is nobody to answer."""


def _too_large(most: int) -> HttpError:
    return HttpError(413, "too_large", f"the body may have at most {most:,} bytes: send less at once")
