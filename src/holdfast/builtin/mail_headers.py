"""Header fields of a mail, written as bytes and compared with what was asked for.

The `email` package parses a value before it writes it, and decodes encoded words (RFC 2047) while doing so; before
Python 3.11.10 and 3.12.5 a line break inside such a word then starts a new header field. This module never parses what
a payload contains: it writes each field and checks that a receiver reads the same value.
"""

import re
from collections.abc import Sequence
from email.charset import QP, Charset
from email.header import Header, decode_header, make_header

from holdfast.errors import Invalid

LINE_LENGTH = 76
"""Length after which a field is folded (RFC 5322 recommends at most 78 characters)."""

_FOLD = re.compile(r"\r\n(?=[ \t])")
_LINE = re.compile(r"[\x20-\x7e]+")


def addresses_field(name: str, addresses: Sequence[str]) -> str:
    """Return a field with addresses without display names; a long one has a line per address."""
    line = f"{name}: {', '.join(addresses)}"
    return line if len(line) <= LINE_LENGTH else f"{name}: " + ",\r\n ".join(addresses)


def text_field(name: str, value: str) -> str:
    """Return a field with any text.

    The text is written as ASCII if a receiver reads it back unchanged, and otherwise as encoded words.

    Raises:
        Invalid: A receiver would read a different value.
    """
    encoded = Charset("utf-8")
    if value.isascii():
        encoded.header_encoding = QP
    for charset in (Charset("us-ascii"), encoded) if value.isascii() else (encoded,):
        text = Header(value, charset, maxlinelen=LINE_LENGTH, header_name=name).encode(linesep="\r\n")
        line = f"{name}: {text}"
        if not text[:1].isspace() and _read(line) == (name, value):  # the first line must not be empty
            return line
    raise Invalid(
        f"{name.lower()}: it cannot be written as a mail header: use plain text", pointer=f"/payload/{name.lower()}"
    )


def _read(line: str) -> tuple[str, str] | None:
    """Return the name and value that a receiver reads, or None if it is not one field."""
    unfolded = _FOLD.sub("", line)
    if not _LINE.fullmatch(unfolded):
        return None
    name, _, value = unfolded.partition(":")
    return name, str(make_header(decode_header(value.strip(" "))))
