"""Cursors of lists that are sorted by name."""

from base64 import urlsafe_b64encode

from holdfast.wire.codec import decode_cursor, invalid_cursor


def name_cursor(last: str) -> str:
    """Return the cursor after this name."""
    return urlsafe_b64encode(last.encode()).decode().rstrip("=")


def read_name_cursor(text: str | None) -> str:
    """Parse the cursor of a list of names; empty for its start. Raises `Invalid`."""
    if text is None:
        return ""
    try:
        decoded = decode_cursor(text).decode("ascii")
    except ValueError:
        raise invalid_cursor() from None
    if not decoded.isprintable():
        raise invalid_cursor()
    return decoded
