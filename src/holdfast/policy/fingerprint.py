"""Error fingerprints, equal for errors that differ only in numbers, ids and addresses."""

import hashlib
import re

_VARYING = (
    (re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"), "<id>"),
    (re.compile(r"0x[0-9a-fA-F]+"), "<address>"),
    (re.compile(r"\b[0-9a-fA-F]{16,}\b"), "<n>"),
    # Only quotes at word boundaries, so that an apostrophe does not start a quoted text.
    (re.compile(r"(?<!\w)'[^'\n]{0,200}'(?!\w)|\"[^\"\n]{0,200}\""), "<text>"),
    (re.compile(r"\d+"), "<n>"),
    (re.compile(r"\s+"), " "),
)
_MAX_LENGTH = 2_000


def normalise(message: str) -> str:
    """Replace the parts of a message that vary between occurrences by placeholders."""
    text = message[:_MAX_LENGTH]
    for pattern, placeholder in _VARYING:
        text = pattern.sub(placeholder, text)
    return text.strip()


def fingerprint(kind: str, message: str) -> str:
    """Return 16 hexadecimal digits that are the same for all occurrences of an error."""
    return hashlib.sha256(f"{kind}\n{normalise(message)}".encode(errors="surrogatepass")).hexdigest()[:16]
