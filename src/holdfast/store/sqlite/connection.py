"""SQLite connections, configured so that a commit is on disk when it returns."""

import contextlib
import os
import random
import time
from pathlib import Path
from urllib.parse import unquote

import apsw

from holdfast.errors import Misconfigured
from holdfast.store.sqlite.errors import FAILED, SETTING, translate

MIN_SQLITE_VERSION = (3, 51, 3)
"""Older versions can corrupt a database that several processes use, at a checkpoint."""

BUSY_TIMEOUT_S = 5.0
"""Timeout of the write lock."""

_MAX_SLEEP_S = 0.005
_CACHE_KIB = 32 * 1024
_WAL_PAGES = 4_000
_MAX_WAL_BYTES = 64 * 1024 * 1024


def file_of(url: str) -> Path:
    """Return the file that a URL names; raise `Misconfigured` if it is invalid."""
    name, _, options = url.partition("://")[2].partition("?")
    name = unquote(name)
    if name in ("", "/", ":memory:", "/:memory:"):
        raise Misconfigured(f"{SETTING}: an in-memory database loses jobs: name a file, as in sqlite:///holdfast.db")
    if not name.startswith("/"):
        raise Misconfigured(
            f"{SETTING}: {url!r} names a host: write sqlite:///file.db, or sqlite:////srv/file.db for an absolute path"
        )
    if options:
        raise Misconfigured(f"{SETTING}: sqlite URLs have no options: remove everything from '?' on")
    file = Path(name[1:])
    if not os.path.isdir(file.parent):  # noqa: PTH112 - False even if this user may not enter the parent
        raise Misconfigured(
            f"{SETTING}: there is no directory {file.parent.absolute()} that this user can enter: "
            "create it, or name another file"
        )
    if file.is_dir():
        raise Misconfigured(f"{SETTING}: {file} is a directory: name a file in it, as in sqlite:///{file}/holdfast.db")
    return file


def connect(file: Path) -> apsw.Connection:
    """Open a connection; raise `Misconfigured` if the file cannot be used."""
    if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")[:3]) < MIN_SQLITE_VERSION:
        raise Misconfigured(
            f"SQLite {apsw.sqlite_lib_version()} can corrupt a file that several processes use: "
            "install a newer version with 'pip install --upgrade apsw'"
        )
    _create(file)
    if not (os.access(file, os.R_OK | os.W_OK) and os.access(file.parent, os.W_OK | os.X_OK)):
        raise Misconfigured(
            f"{SETTING}: {file.absolute()} and its directory must be writable by this user: "
            "change their owner or mode, or name another file"
        )
    try:
        db = apsw.Connection(str(file.absolute()), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            _set_up(db, file)
        except BaseException:
            db.close()
            raise
    except FAILED as error:
        raise translate(error, str(file)) from error
    return db


def _create(file: Path) -> None:
    """Create the file, readable by its owner only; SQLite gives its side files the same mode.

    An existing file is not touched: opening and closing it would drop this process's locks on it.
    """
    with contextlib.suppress(OSError):  # the check that follows reports the failure
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _set_up(db: apsw.Connection, file: Path) -> None:
    wait = _BusyHandler()
    db.set_busy_handler(wait)
    if _switch_to_wal(db, wait) != "wal":
        raise Misconfigured(
            f"{SETTING}: the file system of {file.absolute()} does not support shared memory: use a local disk"
        )
    # Plan each statement once, independently of its values; otherwise many are planned again for each run.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.pragma("synchronous", "FULL")
    db.pragma("temp_store", "MEMORY")
    db.pragma("cache_size", -_CACHE_KIB)
    db.pragma("wal_autocheckpoint", _WAL_PAGES)
    db.pragma("journal_size_limit", _MAX_WAL_BYTES)


def _switch_to_wal(db: apsw.Connection, wait: "_BusyHandler") -> str:
    """Switch to WAL mode, waiting for other processes; return the resulting mode."""
    attempt = 0
    while True:
        try:
            mode: str = db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if not wait(attempt):
                raise
            attempt += 1
        else:
            return mode


class _BusyHandler:
    """Waits for a lock with short random sleeps, unlike the busy handler of SQLite."""

    def __init__(self) -> None:
        self._until = 0.0

    def __call__(self, attempt: int) -> bool:
        if attempt == 0:
            self._until = time.monotonic() + BUSY_TIMEOUT_S
        elif time.monotonic() > self._until:
            return False
        time.sleep(random.uniform(0, min(_MAX_SLEEP_S, 0.0002 * (attempt + 1))))
        return True
