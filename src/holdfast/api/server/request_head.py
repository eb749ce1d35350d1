"""Request heads: rejection of ambiguous ones, a cache of parsed ones, error responses."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import httptools
import msgspec

from holdfast.api.headers import DEFAULT_HEADERS, REQUEST_ID, STATUS_LINES, encode_headers, new_request_id
from holdfast.api.http import HttpRequest
from holdfast.wire.problems import MEDIA_TYPE, TITLES, Problem

_UNAMBIGUOUS_HEAD = re.compile(rb"[^ \r\n\0]+(?: [^ \r\n\0]+)*(?:\r\n[^ \t\r\n\0][^\r\n\0]*)*\r\n\r\n")
"""A request line with single spaces and unfolded header lines, all ending in CR LF."""

_HOST = re.compile(rb"(?:[A-Za-z0-9._~%!$&'()*+;=-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?")
"""Host and port of RFC 9110; a proxy could read another value differently."""

_BARE_LF = re.compile(rb"(?<!\r)\n")

END = b"\r\n\r\n"
"""End of a head."""

_UPGRADE = re.compile(rb"\r\nUpgrade:[^\r\n]*", re.IGNORECASE)

_MAX_CACHED_HEADS = 512
_MAX_CACHED_HEAD_BYTES = 2_048
_NEVER_CACHED = frozenset({b"transfer-encoding", b"idempotency-key", b"traceparent", b"x-request-id"})
"""Headers of uncached heads: the body length is unknown, or the value is new each time."""


class RequestHead(NamedTuple):
    """A parsed request head."""

    method: str
    path: str
    query: bytes
    headers: Mapping[bytes, bytes]
    body_length: int


class HeadCache:
    """Cache of parsed heads by their bytes; clients on persistent connections repeat them.

    Holds only heads that were parsed, are unambiguous, keep the connection open and have no header that differs from
    request to request. A hit saves about 7 µs; `bench/request_heads.py` measures it.
    """

    def __init__(self) -> None:
        self._heads: dict[bytes, RequestHead] = {}
        self.get = self._heads.get
        """Return the parsed form of these bytes; None if they are not cached."""

    def add(self, data: bytes, request: HttpRequest) -> None:
        """Cache the head of a complete keep-alive request."""
        size = data.find(END) + len(END)
        length = len(data) - size
        headers = request.headers
        announced = headers.get(b"content-length", b"0")
        if size <= _MAX_CACHED_HEAD_BYTES and headers.keys().isdisjoint(_NEVER_CACHED) and announced == b"%d" % length:
            if len(self._heads) >= _MAX_CACHED_HEADS:
                self._heads.clear()
            self._heads[data[:size]] = RequestHead(request.method, request.path, request.query_string, headers, length)


def head_error(data: bytes, end: int, max_bytes: int) -> tuple[int, str, str] | None:
    """Return status, code and detail of the error in a head that ends at `end`; None if valid.

    An incomplete head (`end` is negative) is valid as long as it is small and has no bare line feed. Another parser
    might read a complete head differently if it has a folded line, a bare CR or LF, a NUL, or repeated spaces.
    """
    if end > max_bytes or (end < 0 and len(data) > max_bytes):
        detail = f"the request head is larger than {max_bytes:,} bytes: shorten its path or headers"
        return 431, "head_too_large", detail
    if end < 0:
        if _BARE_LF.search(data):
            return 400, "malformed_request", "a line does not end with CR LF: use CR LF line endings"
    elif _UNAMBIGUOUS_HEAD.fullmatch(data, 0, end + len(END)) is None:
        detail = "a header is folded or a line does not end with CR LF: send one header per line"
        return 400, "malformed_request", detail
    return None


def without_upgrade(data: bytes, end: int) -> bytes:
    """Return input whose head ends at `end` without its `Upgrade` headers.

    The server may ignore them (RFC 9110, section 7.8). The parser would end the request at the head and lose its body,
    as in the first request of clients that offer HTTP/2 without TLS.
    """
    return _UPGRADE.sub(b"", data[:end]) + data[end:] if _UPGRADE.search(data, 0, end) else data


def framing_error(headers: Mapping[bytes, bytes], version: str) -> tuple[int, str, str] | None:
    """Return status, code and detail of the error in version, host or length; None if valid.

    Repeated headers are joined with a comma.
    """
    host, length, coding = headers.get(b"host"), headers.get(b"content-length"), headers.get(b"transfer-encoding")
    if version not in ("1.1", "1.0"):
        return 400, "malformed_request", "unsupported HTTP version: send HTTP/1.1"
    if version == "1.1" if host is None else b"," in host:
        return 400, "malformed_request", "the Host header is missing or repeated: send exactly one"
    if host and _HOST.fullmatch(host) is None:
        return 400, "malformed_request", "the Host header is not a host name or address with an optional port"
    if coding is None:
        ambiguous = length is not None and b"," in length
    else:
        ambiguous = length is not None or version == "1.0" or coding.lower() != b"chunked"
    if ambiguous:
        return (
            400,
            "malformed_request",
            "the body length is ambiguous: send one Content-Length, or Transfer-Encoding: chunked",
        )
    return None


@lru_cache(256)
def split_target(url: bytes) -> tuple[str, bytes]:
    """Return the raw path and query of a request target. Raises `HttpParserError`."""
    parsed = httptools.parse_url(url)
    return parsed.path.decode("ascii"), parsed.query or b""


def render_problem(status: int, code: str, detail: str) -> bytes:
    """Serialise a problem response for a request that could not be parsed."""
    body = msgspec.json.encode(Problem(TITLES[status], status, code, detail))
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        *DEFAULT_HEADERS,
        (REQUEST_ID, new_request_id()),
        (b"connection", b"close"),
    ]
    return b"".join([STATUS_LINES[status], encode_headers(headers), b"\r\n", body])
