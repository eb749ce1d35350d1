"""Texts from outside, made fit to be stored and shown."""


def sanitize(text: str, longest: int) -> str:
    """At most `longest` characters, none of which a database or JSON refuses; what is cut is said."""
    fit = text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
    if len(fit) <= longest:
        return fit
    return f"{fit[: max(0, longest - 40)]} … [{len(fit):,} characters in all]"[:longest]


def escaped(text: str) -> str:
    """On one line, whatever it contains: what would end a line or move a cursor is written as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
