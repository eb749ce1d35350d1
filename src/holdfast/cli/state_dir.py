"""`.holdfast/`: what `up` keeps beside its database, for itself and for the commands that talk to it."""

import os
import secrets
from pathlib import Path

from holdfast.errors import Misconfigured

FOLDER = ".holdfast"
ADMIN_KEY = "admin.key"
JWT_SECRET = "jwt.secret"  # noqa: S105 - the name of a file
URL = "url"


def kept_secret(name: str, folder: Path | None = None) -> str:
    """A secret that is the same at every start: made at the first one, readable by its owner alone."""
    path = (folder or Path(FOLDER)) / name
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            # Made where it is not, in one step: of two that start at once, both use the same.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32) + "\n")
        except FileExistsError:
            pass
        if path.stat().st_mode & 0o077:
            raise Misconfigured(f"{path} can be read by others: chmod 600 {path}, or remove it for a new one")
        secret = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured(f"{path} cannot be used ({error}): mend or remove it, or set HOLDFAST_ADMIN_KEY") from error
    if len(secret) < 32:
        raise Misconfigured(f"{path} does not hold what was put there: remove it for a new one")
    return secret


def note_url(url: str, folder: Path | None = None) -> None:
    """Where the API answers, for the commands that look for it."""
    ((folder or Path(FOLDER)) / URL).write_text(url + "\n", encoding="ascii")
