"""Webhooks: allowed headers, signatures, and the classification of responses."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import msgspec

from holdfast.errors import Invalid
from holdfast.model.time import Duration, seconds
from holdfast.policy.redact import redact
from holdfast.policy.retry import clamp_wait

MAX_RETRY_AFTER = seconds(3_600)
MAX_HEADERS = 50
MAX_HEADER_VALUE_LENGTH = 4_096
MAX_EXCERPT_BYTES = 1_024
"""Size of the stored beginning of a response."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
_RESERVED_HEADERS = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
    "cookie", "accept-encoding", "idempotency-key",
})  # fmt: skip
_RESERVED_PREFIXES = ("webhook-", "proxy-")
_RETRYABLE = frozenset({408, 425, 429})
_HAS_RETRY_AFTER = frozenset({429, 503})


class DeliveryVerdict(NamedTuple):
    """Classification of a response."""

    delivered: bool
    retryable: bool = False
    """Another attempt may succeed."""
    wait: Duration | None = None
    """Delay that the receiver requested."""
    destination_failed: bool = False
    """The destination failed, not just this request, which counts for its circuit breaker."""


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the caller's headers; raises `Invalid` for malformed, duplicate or reserved ones."""
    if len(headers) > MAX_HEADERS:
        raise Invalid(
            f"headers: there are {len(headers)}; at most {MAX_HEADERS} are allowed", pointer="/payload/headers"
        )
    seen: set[str] = set()
    for name, value in headers.items():
        pointer = f"/payload/headers/{name[:100]}"
        if not _TOKEN.fullmatch(name):
            raise Invalid(f"headers: {name[:100]!r} is not a valid header name", pointer=pointer)
        lower = name.lower()
        if lower in _RESERVED_HEADERS or lower.startswith(_RESERVED_PREFIXES):
            raise Invalid(f"headers: {name} is set by holdfast itself: leave it out", pointer=pointer)
        if lower in seen:
            raise Invalid(f"headers: {name} occurs twice", pointer=pointer)
        if len(value) > MAX_HEADER_VALUE_LENGTH or not _VALUE.fullmatch(value):
            raise Invalid(
                f"headers: the value of {name} cannot be sent: give at most {MAX_HEADER_VALUE_LENGTH:,} printable "
                "ASCII characters, without spaces at either end",
                pointer=pointer,
            )
        seen.add(lower)
    return dict(headers)


def signature(message_id: str, timestamp: int, body: bytes, keys: Sequence[bytes]) -> str:
    """Return the `webhook-signature` header (Standard Webhooks) with one signature per key."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = (hmac.new(key, signed, hashlib.sha256).digest() for key in keys)
    return " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests)


def classify_response(
    status: int, retry_after: str | None, *, expected: Sequence[int], retry_on: Sequence[int], now: datetime
) -> DeliveryVerdict:
    """Classify a response as delivered, retryable or permanently failed.

    Args:
        status: HTTP status code.
        retry_after: Value of the `Retry-After` header.
        expected: Status codes that mean success; if empty, all of 2xx.
        retry_on: Status codes to retry, in addition to 408, 425, 429 and 5xx.
        now: Current time, to which a `Retry-After` date is relative.
    """
    if status in expected or (not expected and 200 <= status <= 299):
        return DeliveryVerdict(delivered=True)
    destination_failed = status >= 500 or status == 429
    return DeliveryVerdict(
        delivered=False,
        retryable=destination_failed or status in _RETRYABLE or status in retry_on,
        wait=parse_retry_after(retry_after, now) if status in _HAS_RETRY_AFTER else None,
        destination_failed=destination_failed,
    )


def parse_retry_after(value: str | None, now: datetime) -> Duration | None:
    """Parse a `Retry-After` header, capped at one hour; None if it is missing or malformed."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return clamp_wait(seconds(min(int(text[:12]), 10**9)), maximum=MAX_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return clamp_wait(seconds(max(-1.0, min(wait.total_seconds(), 1e9))), maximum=MAX_RETRY_AFTER)


def decode_response(body: bytes, *, complete: bool) -> tuple[Any, str | None]:
    """Return the JSON value of a response body and None, or None and why it is not kept."""
    if not complete:
        return None, f"the response has more than {len(body):,} bytes"
    try:
        return msgspec.json.decode(body), None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None, "the response is not JSON"


def excerpt(body: bytes) -> str:
    """Return the beginning of a response body as text that is safe to store and display."""
    text = body[: 2 * MAX_EXCERPT_BYTES].decode("utf-8", "replace")
    plain = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
    return redact(plain).encode()[:MAX_EXCERPT_BYTES].decode("utf-8", "ignore")
