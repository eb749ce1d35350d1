"""Folder `.holdfast/`, where `holdfast up` keeps its secrets and its URL for other commands."""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from holdfast.errors import Misconfigured

FOLDER = ".holdfast"
ADMIN_KEY = "admin.key"
JWT_SECRET = "jwt.secret"  # noqa: S105 - the name of a file
URL = "url"


def load_or_create_secret(name: str, folder: Path | None = None) -> str:
    """Return the secret in this file; create it on first use, readable only by its owner."""
    path = (folder or Path(FOLDER)) / name
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            # O_EXCL: two processes that start at the same time use the same secret.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32) + "\n")
        except FileExistsError:
            pass
        if path.stat().st_mode & 0o077:
            raise Misconfigured(f"other users can read {path}: run chmod 600 {path}, or remove it to get a new one")
        secret = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"cannot use {path} ({error}): fix or remove it, or set HOLDFAST_ADMIN_KEY") from error
    if len(secret) < 32:
        raise Misconfigured(f"{path} does not contain a valid secret: remove it to get a new one")
    return secret


@contextmanager
def published_url(url: str, folder: Path | None = None) -> Iterator[None]:
    """Store the URL of the API for other commands while the block runs.

    The file is locked, so that commands ignore one that a killed process left. Another program may use its port, and
    must not get the key of this folder.
    """
    path = (folder or Path(FOLDER)) / URL
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("a", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        file.truncate(0)
        file.write(url + "\n")
        file.flush()
        try:
            yield
        finally:
            if _lock_alone(file):
                path.unlink(missing_ok=True)


def read_url(folder: Path | None = None) -> str | None:
    """Return the URL of the API that runs in this folder; None if none does."""
    try:
        with ((folder or Path(FOLDER)) / URL).open(encoding="ascii") as file:
            return None if _lock_alone(file) else file.read().strip()
    except (OSError, UnicodeDecodeError):
        return None


def _lock_alone(file: TextIO) -> bool:
    """Lock a file; return False if another process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
