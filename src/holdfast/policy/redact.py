"""Keeps secrets out of what is stored and shown."""

import re

_NAMES = r"authorization|api[_-]?key|access[_-]?key|passw(?:or)?d|passphrase|secret|token|cookie|credential|dsn"
_ASSIGNED = re.compile(
    rf"""((?:[\w-]*(?:{_NAMES})[\w-]*)["']?\s*[:=]\s*)(?:(?:bearer|basic)\s+)?("[^"\n]*"|'[^'\n]*'|[^\s,;&)}}\]]+)""",
    re.IGNORECASE,
)
_SECRET = re.compile(_NAMES, re.IGNORECASE)
_IN_URL = re.compile(r"(\w{2,20}://[^\s:/@]{0,200}):[^\s/@]{1,500}@")
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)


def redact(text: str) -> str:
    """The text with what looks like a password, key or token replaced."""
    return _ASSIGNED.sub(r"\1***", _BEARER.sub(r"\1 ***", _IN_URL.sub(r"\1:***@", text)))


def redact_field(name: str, text: str) -> str:
    """The value of a field: nothing of it when the name says that it is a secret."""
    return "***" if _SECRET.search(name) else redact(text)
