"""The head of a request: whether it means one thing only, and what is said to one that does not."""

import re
from collections.abc import Sequence

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from holdfast.api.headers import REQUEST_ID, USUAL_HEADERS, new_request_id
from holdfast.wire.problems import MEDIA_TYPE, TITLES, Problem

_AMBIGUOUS = re.compile(rb"\r\n[ \t]|\r(?!\n)|(?<!\r)\n|\x00")
"""A folded line, a line that ends by half, a NUL: what servers read differently."""

_BARE_LF = re.compile(rb"(?<!\r)\n")


def is_ambiguous(data: bytes, end: int) -> bool:
    """Whether others may read the head differently that ends at `end`."""
    return _AMBIGUOUS.search(data, 0, end + 4) is not None or data.find(b"  ", 0, data.index(b"\r\n")) >= 0


def has_bare_line_feed(data: bytes) -> bool:
    """Whether a head that is not complete never will be, for its lines end by half."""
    return _BARE_LF.search(data) is not None


def fault(headers: Sequence[tuple[bytes, bytes]], version: str, *, most: int) -> tuple[int, str, str] | None:
    """What keeps a head from meaning one thing only: status, code and detail of the answer."""
    hosts = lengths = 0
    coding: list[bytes] = []
    for name, value in headers:
        if name == b"host":
            hosts += 1
        elif name == b"content-length":
            lengths += 1
        elif name == b"transfer-encoding":
            coding.append(value.lower())
    if len(headers) > most:
        return 431, "head_too_large", f"a request may have {most} headers"
    if version not in ("1.1", "1.0"):
        return 400, "malformed_request", "send HTTP/1.1"
    if hosts > 1 or (not hosts and version == "1.1"):
        return 400, "malformed_request", "send one Host header"
    if lengths > 1 or (coding and (lengths or version == "1.0" or coding != [b"chunked"])):
        return 400, "malformed_request", "say once how long the body is: Content-Length, or chunked"
    return None


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
    return b"".join([STATUS_LINE[status], *(b"%b: %b\r\n" % each for each in headers), b"\r\n", body])
