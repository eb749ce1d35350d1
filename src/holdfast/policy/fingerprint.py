"""The same error has the same fingerprint, whatever numbers, ids and addresses it mentions."""

import hashlib
import re

_VARYING = (
    (re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"), "<id>"),
    (re.compile(r"0x[0-9a-fA-F]+"), "<address>"),
    (re.compile(r"\b[0-9a-fA-F]{16,}\b"), "<n>"),
    # Quotes at the edges of words only: an apostrophe opens nothing.
    (re.compile(r"(?<!\w)'[^'\n]{0,200}'(?!\w)|\"[^\"\n]{0,200}\""), "<text>"),
    (re.compile(r"\d+"), "<n>"),
    (re.compile(r"\s+"), " "),
)
_MAX_LENGTH = 2_000


def normalise(message: str) -> str:
    """The message with everything that varies from one occurrence to the next replaced."""
    text = message[:_MAX_LENGTH]
    for pattern, placeholder in _VARYING:
        text = pattern.sub(placeholder, text)
    return text.strip()


def fingerprint(kind: str, message: str) -> str:
    """Sixteen hexadecimal digits that group equal errors."""
    return hashlib.sha256(f"{kind}\n{normalise(message)}".encode(errors="surrogatepass")).hexdigest()[:16]
