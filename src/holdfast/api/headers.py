"""Response headers: request id, security headers, CORS, and their serialisation."""

import itertools
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

Headers = list[tuple[bytes, bytes]]

SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        (
            b"default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; "
            b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
    ),
)
NO_STORE = (b"cache-control", b"no-store")
DEFAULT_HEADERS = (*SECURITY_HEADERS, NO_STORE)

REQUEST_ID = b"x-request-id"
_TOKEN = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

METHODS = b"GET, HEAD, POST, PATCH, PUT, DELETE"
ALLOWED_HEADERS = b"Authorization, Content-Type, Holdfast-Tenant, Idempotency-Key, Last-Event-ID, X-Request-ID"
EXPOSED_HEADERS = b"Idempotent-Replayed, Retry-After, X-Request-ID"


def _id_factory() -> Callable[[], bytes]:
    """Return a function that creates ids, cheap and unique across nodes."""
    node = secrets.token_hex(6).encode()
    count = itertools.count(1)
    return lambda: b"%b-%x" % (node, next(count))


new_request_id = _id_factory()


def request_id(value: bytes | None) -> bytes:
    """Return the client's request id if it is a short token, otherwise a new one."""
    return value if value is not None and _TOKEN.fullmatch(value) else new_request_id()


def headers_of(media_type: str, extra: Mapping[str, str]) -> Headers:
    """Return the default headers for this media type, and the response's own ones."""
    headers = [(b"content-type", media_type.encode("ascii")), *SECURITY_HEADERS]
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in extra.items()]
    if "cache-control" not in extra:
        headers.append(NO_STORE)
    return headers


STATUS_LINES = {status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode()) for status in HTTPStatus}

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def encode_headers(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Serialise headers. Raises ValueError on control characters, so that none can be injected."""
    for name, value in headers:
        if _CONTROL.search(name) or _CONTROL.search(value):
            raise ValueError(f"header {name!r} contains a control character")
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def encode_head(status: int, media_type: str, extra: Mapping[str, str]) -> bytes:
    """Serialise the status line, date and headers of a response."""
    if extra:
        return STATUS_LINES[status] + date_line() + encode_headers(headers_of(media_type, extra))
    return _cached_head(status, media_type, int(time.time()))


@lru_cache(32)  # most responses have no own headers, and many are sent within the same second
def _cached_head(status: int, media_type: str, second: int) -> bytes:
    return STATUS_LINES[status] + _date_line(second) + encode_headers(headers_of(media_type, {}))


def date_line() -> bytes:
    """Return the Date header line."""
    return _date_line(int(time.time()))


@lru_cache(2)
def _date_line(second: int) -> bytes:
    return b"date: %b\r\n" % formatdate(second, usegmt=True).encode()


class Cors:
    """CORS policy: the allowed origins, none by default; credentials are never allowed."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origin.encode("ascii") for origin in origins)

    def headers(self, method: str, origin: bytes | None) -> Headers:
        """Return the CORS headers of a response; for OPTIONS, those of a preflight."""
        if not self._origins:
            return []
        if origin is None or origin not in self._origins:
            return [(b"vary", b"Origin")]
        headers = [
            (b"vary", b"Origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
        ]
        if method == "OPTIONS":
            headers += [
                (b"access-control-allow-methods", METHODS),
                (b"access-control-allow-headers", ALLOWED_HEADERS),
                (b"access-control-max-age", b"600"),
            ]
        return headers
