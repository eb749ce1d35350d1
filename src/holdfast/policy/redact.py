"""Redaction of secrets from text that is stored or displayed."""

import re

_NAMES = r"authorization|api[_-]?key|access[_-]?key|passw(?:or)?d|passphrase|secret|token|cookie|credential|dsn"
_ASSIGNED = re.compile(
    rf"""((?:[\w-]*(?:{_NAMES})[\w-]*)["']?\s*[:=]\s*)(?:(?:bearer|basic)\s+)?("[^"\n]*"|'[^'\n]*'|[^\s,;&)}}\]]+)""",
    re.IGNORECASE,
)
_SECRET = re.compile(_NAMES, re.IGNORECASE)
_IN_URL = re.compile(r"(\w{2,20}://[^\s:/@]{0,200}):[^\s]{1,500}@")
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)


def redact(text: str) -> str:
    """Replace parts of a text that look like passwords, keys or tokens."""
    return _ASSIGNED.sub(r"\1***", _BEARER.sub(r"\1 ***", _IN_URL.sub(r"\1:***@", text)))


def redact_field(name: str, text: str) -> str:
    """Redact the value of a named field; all of it if the name suggests a secret."""
    return "***" if _SECRET.search(name) else redact(text)
