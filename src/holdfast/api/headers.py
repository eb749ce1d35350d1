"""The headers that every answer carries, whoever gives it: an id, what browsers may do with it, who may read it."""

import itertools
import re
import secrets
from collections.abc import Callable, Sequence

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


class Cors:
    """Which other origins' pages may call. None by default; never with cookies, of which there are none anyway."""

    def __init__(self, origins: Sequence[str]) -> None:
        self._origins = frozenset(origin.encode("ascii") for origin in origins)

    def headers(self, origin: bytes | None) -> Headers:
        """What an answer tells a browser about who may read it."""
        if not self._origins:
            return []
        if origin is None or origin not in self._origins:
            return [(b"vary", b"Origin")]
        return [
            (b"vary", b"Origin"),
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", TOLD_HEADERS),
        ]

    def preflight(self, origin: bytes | None) -> Headers:
        """What a browser is told that asks before it calls."""
        if origin is None or origin not in self._origins:
            return []
        return [
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", ASKED_HEADERS),
            (b"access-control-max-age", b"600"),
        ]
