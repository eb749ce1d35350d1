"""The dashboard's files, as they were built: read once, compressed once, the same from every node."""

import gzip
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "dashboard"
INDEX = "index.html"

FOR_EVER = "public, max-age=31536000, immutable"
"""For files whose names tell what is in them: another content has another name."""
ASK_AGAIN = "no-cache"
"""For the one page that names them: kept, and asked about each time."""

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
}


class File(NamedTuple):
    """One file of the build."""

    content: bytes
    compressed: bytes | None
    """By gzip; None where that makes it no smaller."""
    media_type: str
    etag: str


@cache
def index() -> File | None:
    """The page that starts the dashboard; None where it was not built."""
    return _read(FOLDER / INDEX)


@cache
def assets() -> frozenset[str]:
    """The names of what that page refers to. Only these are ever opened, whatever a path says."""
    folder = FOLDER / "assets"
    return frozenset(each.name for each in folder.iterdir()) if folder.is_dir() else frozenset()


@cache
def asset(name: str) -> File | None:
    """One of them."""
    return _read(FOLDER / "assets" / name) if name in assets() else None


def _read(path: Path) -> File | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    # Without the time of day in its head, so that all nodes give the same bytes.
    packed = gzip.compress(content, mtime=0)
    return File(
        content,
        packed if len(packed) < len(content) else None,
        _MEDIA_TYPES.get(path.suffix, "application/octet-stream"),
        sha256(content).hexdigest()[:32],
    )


def accepts_gzip(accepted: str) -> bool:
    """Whether an `Accept-Encoding` takes gzip."""
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def is_known(etag: str, asked: str) -> bool:
    """Whether `If-None-Match` names what is here."""
    known = {each.strip().removeprefix("W/").strip('"') for each in asked.split(",")}
    return "*" in known or etag in known
