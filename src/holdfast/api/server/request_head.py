"""The head of a request: whether it means one thing only, and what is said to one that does not."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import httptools
import msgspec

from holdfast.api.headers import REQUEST_ID, STATUS_LINES, USUAL_HEADERS, lines, new_request_id
from holdfast.api.http import Incoming
from holdfast.wire.problems import MEDIA_TYPE, TITLES, Problem

_CLEAR = re.compile(rb"[^ \r\n\0]+(?: [^ \r\n\0]+)*(?:\r\n[^ \t\r\n\0][^\r\n\0]*)*\r\n\r\n")
"""A line of words with one space between them, and lines that begin with no space; no half of a line's end anywhere."""

_BARE_LF = re.compile(rb"(?<!\r)\n")

END = b"\r\n\r\n"
"""Of a head."""

_MOST_REMEMBERED = 512
_LONGEST_REMEMBERED = 2_048


class Head(NamedTuple):
    """What a head was found to say."""

    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    length: int
    """Of the body that follows it."""


class Heads:
    """Heads that came before, byte by byte: whoever keeps a connection open sends the same ones over and over.

    What the same bytes mean does not change. Only those are kept that the parser has read, that mean one thing only,
    and after which the connection stays open.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}
        self.get = self._known.get
        """What these very bytes say; None if they have to be read."""

    def remember(self, data: bytes, request: Incoming) -> None:
        """These bytes were read whole as this request, after which the connection stays open."""
        size = data.find(END) + len(END)
        length = len(data) - size
        headers = request.headers
        told = headers.get(b"content-length", b"0")
        if size <= _LONGEST_REMEMBERED and b"transfer-encoding" not in headers and told == b"%d" % length:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[data[:size]] = Head(request.method, request.path, request.query_string, headers, length)


def is_ambiguous(data: bytes, end: int) -> bool:
    """Whether others may read the head differently that ends at `end`.

    By a folded line, a line that ends by half, a NUL, or two spaces where one stands.
    """
    return _CLEAR.fullmatch(data, 0, end + 4) is None


def has_bare_line_feed(data: bytes) -> bool:
    """Whether a head that is not complete never will be, for its lines end by half."""
    return _BARE_LF.search(data) is not None


def fault(headers: Mapping[bytes, bytes], version: str) -> tuple[int, str, str] | None:
    """What keeps a head from meaning one thing only: status, code and detail of the answer.

    A header that stood twice has both its values here, with a comma between them.
    """
    host, length, coding = headers.get(b"host"), headers.get(b"content-length"), headers.get(b"transfer-encoding")
    if version not in ("1.1", "1.0"):
        return 400, "malformed_request", "send HTTP/1.1"
    if version == "1.1" if host is None else b"," in host:
        return 400, "malformed_request", "send one Host header"
    if coding is None:
        unclear = length is not None and b"," in length
    else:
        unclear = length is not None or version == "1.0" or coding.lower() != b"chunked"
    if unclear:
        return 400, "malformed_request", "say once how long the body is: Content-Length, or chunked"
    return None


@lru_cache(256)
def target(url: bytes) -> tuple[str, bytes]:
    """The path, as it was written, and the query of what a request asks for; raises what the parser raises."""
    parsed = httptools.parse_url(url)
    return parsed.path.decode("ascii"), parsed.query or b""


def written(status: int, code: str, detail: str) -> bytes:
    """A problem as it goes over the wire, where no request came to be."""
    body = msgspec.json.encode(Problem(TITLES[status], status, code, detail))
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        *USUAL_HEADERS,
        (REQUEST_ID, new_request_id()),
        (b"connection", b"close"),
    ]
    return b"".join([STATUS_LINES[status], lines(headers), b"\r\n", body])
