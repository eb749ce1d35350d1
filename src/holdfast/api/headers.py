"""The headers that every answer carries, whoever gives it: an id, what browsers may do with it, who may read it."""

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
USUAL_HEADERS = (*SECURITY_HEADERS, NO_STORE)

REQUEST_ID = b"x-request-id"
_TOKEN = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

METHODS = b"GET, HEAD, POST, PATCH, PUT, DELETE"
ASKED_HEADERS = b"Authorization, Content-Type, Holdfast-Tenant, Idempotency-Key, Last-Event-ID, X-Request-ID"
TOLD_HEADERS = b"Idempotent-Replayed, Retry-After, X-Request-ID"


def _ids() -> Callable[[], bytes]:
    """Ids that no other node gives, and that cost nothing."""
    node = secrets.token_hex(6).encode()
    count = itertools.count(1)
    return lambda: b"%b-%x" % (node, next(count))


new_request_id = _ids()


def request_id(given: bytes | None) -> bytes:
    """The id that a request came with, if it is a short token; else a new one."""
    return given if given is not None and _TOKEN.fullmatch(given) else new_request_id()


def headers_of(media_type: str, own: Mapping[str, str]) -> Headers:
    """Those of any answer with a body of this type, and `own` beside them."""
    headers = [(b"content-type", media_type.encode("ascii")), *SECURITY_HEADERS]
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in own.items()]
    if "cache-control" not in own:
        headers.append(NO_STORE)
    return headers


STATUS_LINES = {each.value: b"HTTP/1.1 %d %b\r\n" % (each.value, each.phrase.encode()) for each in HTTPStatus}

_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Headers as they go over the wire; never more of them than there are here."""
    for name, value in headers:
        if _CONTROL.search(name) or _CONTROL.search(value):
            raise ValueError(f"the header {name!r} has a control character in it")
    return b"".join([b"%b: %b\r\n" % each for each in headers])


def opening(status: int, media_type: str, own: Mapping[str, str]) -> bytes:
    """The first lines of an answer that is given now."""
    if own:
        return STATUS_LINES[status] + date_line() + lines(headers_of(media_type, own))
    return _usual_opening(status, media_type, int(time.time()))


@lru_cache(32)  # nearly every answer has no headers of its own, and many are given within a second
def _usual_opening(status: int, media_type: str, second: int) -> bytes:
    return STATUS_LINES[status] + _date_line(second) + lines(headers_of(media_type, {}))


def date_line() -> bytes:
    """When an answer was given, to the second."""
    return _date_line(int(time.time()))


@lru_cache(2)
def _date_line(second: int) -> bytes:
    return b"date: %b\r\n" % formatdate(second, usegmt=True).encode()


class Cors:
    """Which other origins' pages may call. None by default; never with cookies, of which there are none anyway."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origin.encode("ascii") for origin in origins)

    def headers(self, method: str, origin: bytes | None) -> Headers:
        """What an answer tells a browser about who may read it, and who asks before calling what it may call."""
        if not self._origins:
            return []
        if origin is None or origin not in self._origins:
            return [(b"vary", b"Origin")]
        told = [
            (b"vary", b"Origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", TOLD_HEADERS),
        ]
        if method == "OPTIONS":
            told += [
                (b"access-control-allow-methods", METHODS),
                (b"access-control-allow-headers", ASKED_HEADERS),
                (b"access-control-max-age", b"600"),
            ]
        return told
