"""Dashboard build files: read and compressed once, identical on every node."""

import gzip
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "dashboard"
INDEX = "index.html"

CACHE_FOREVER = "public, max-age=31536000, immutable"
"""For files whose names contain a content hash."""
REVALIDATE = "no-cache"
"""For the index page: cached, but revalidated on every load."""

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".woff2": "font/woff2",
}


class File(NamedTuple):
    """A file of the dashboard build."""

    content: bytes
    compressed: bytes | None
    """gzip; None if that is not smaller."""
    media_type: str
    etag: str


@cache
def index() -> File | None:
    """Return the index page; None if the dashboard was not built."""
    return _read(FOLDER / INDEX)


@cache
def assets() -> frozenset[str]:
    """Return the asset names. Only these files are ever opened, which prevents path traversal."""
    folder = FOLDER / "assets"
    return frozenset(file.name for file in folder.iterdir()) if folder.is_dir() else frozenset()


@cache
def asset(name: str) -> File | None:
    """Return an asset; None if there is none of that name."""
    return _read(FOLDER / "assets" / name) if name in assets() else None


def _read(path: Path) -> File | None:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    # mtime=0 so that all nodes produce the same bytes.
    compressed = gzip.compress(content, mtime=0)
    return File(
        content,
        compressed if len(compressed) < len(content) else None,
        _MEDIA_TYPES.get(path.suffix, "application/octet-stream"),
        sha256(content).hexdigest()[:32],
    )


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether an `Accept-Encoding` value accepts gzip."""
    for part in accept_encoding.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def is_cached(etag: str, if_none_match: str) -> bool:
    """Return whether `If-None-Match` matches this ETag."""
    cached = {tag.strip().removeprefix("W/").strip('"') for tag in if_none_match.split(",")}
    return "*" in cached or etag in cached
