"""Make untrusted text safe to store and display."""


def sanitize(text: str, max_length: int) -> str:
    """Escape characters that databases or JSON reject, and truncate to `max_length`."""
    safe = text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    if len(safe) <= max_length:
        return safe
    return f"{safe[: max(0, max_length - 40)]} … [{len(safe):,} characters in total]"[:max_length]


def escape_unprintable(text: str) -> str:
    """Replace unprintable characters, such as line breaks, by escape sequences."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
