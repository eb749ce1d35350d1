"""Webhooks: what may be in a request, how it is signed, and what an answer means."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from holdfast.errors import Invalid
from holdfast.model.time import Duration, seconds
from holdfast.policy.redact import redact
from holdfast.policy.retry import honour

MAX_RETRY_AFTER = seconds(3_600)
MAX_HEADERS = 50
MAX_HEADER_VALUE_LENGTH = 4_096
MAX_EXCERPT_BYTES = 1_024
"""Bytes that are kept of an answer."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
_OURS = frozenset({
    "host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
    "cookie", "accept-encoding", "idempotency-key",
})  # fmt: skip
_OUR_FAMILIES = ("webhook-", "proxy-")
_LATER = frozenset({408, 425, 429})
_SAYS_WHEN = frozenset({429, 503})


class Verdict(NamedTuple):
    """What an answer means."""

    delivered: bool
    again: bool = False
    """Another attempt may help."""
    wait: Duration | None = None
    """When the receiver wants it, if it says so."""
    sick: bool = False
    """It speaks of the destination, and not of this one request."""


def check_headers(given: Mapping[str, str]) -> dict[str, str]:
    """The caller's headers; `Invalid` for one that would be another request's, or is ours to set."""
    if len(given) > MAX_HEADERS:
        raise Invalid(f"headers: there are {len(given)}: give at most {MAX_HEADERS}", pointer="/payload/headers")
    seen: set[str] = set()
    for name, value in given.items():
        at = f"/payload/headers/{name[:100]}"
        if not _TOKEN.fullmatch(name):
            raise Invalid(f"headers: {name[:100]!r} is no name of a header", pointer=at)
        low = name.lower()
        if low in _OURS or low.startswith(_OUR_FAMILIES):
            raise Invalid(f"headers: {name} is set by holdfast itself: leave it out", pointer=at)
        if low in seen:
            raise Invalid(f"headers: {name} is there twice", pointer=at)
        if len(value) > MAX_HEADER_VALUE_LENGTH or not _VALUE.fullmatch(value):
            raise Invalid(
                f"headers: the value of {name} cannot be sent: give at most {MAX_HEADER_VALUE_LENGTH:,} printable "
                "ASCII characters, without spaces at either end",
                pointer=at,
            )
        seen.add(low)
    return dict(given)


def signature(message_id: str, timestamp: int, body: bytes, keys: Sequence[bytes]) -> str:
    """The header `webhook-signature`: one for each key, the newest first."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    made = (base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys)
    return " ".join(f"v1,{each}" for each in made)


def judge(
    status: int, retry_after: str | None, *, expected: Sequence[int], again: Sequence[int], now: datetime
) -> Verdict:
    """What an answer means: delivered, to be tried again, or pointless.

    Too many requests and failures of the receiver are tried again; all other refusals only where `again` names them.
    """
    if status in expected or (not expected and 200 <= status <= 299):
        return Verdict(delivered=True)
    wait = read_retry_after(retry_after, now) if status in _SAYS_WHEN else None
    sick = status >= 500 or status == 429
    return Verdict(delivered=False, again=sick or status in _LATER or status in again, wait=wait, sick=sick)


def read_retry_after(value: str | None, now: datetime) -> Duration | None:
    """How long a receiver wants to be left alone, at most an hour; None when it does not say, or nothing readable."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return honour(seconds(min(int(text[:12]), 10**9)), longest=MAX_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    wait = (at if at.tzinfo else at.replace(tzinfo=UTC)) - now
    return honour(seconds(max(-1.0, min(wait.total_seconds(), 1e9))), longest=MAX_RETRY_AFTER)


def excerpt(answer: bytes) -> str:
    """The beginning of an answer as text: whatever it is, it can be stored and shown."""
    text = answer[: 2 * MAX_EXCERPT_BYTES].decode("utf-8", "replace")
    plain = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)
    return redact(plain).encode()[:MAX_EXCERPT_BYTES].decode("utf-8", "ignore")
