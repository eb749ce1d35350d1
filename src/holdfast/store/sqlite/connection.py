"""From a URL to a connection, set up so that a commit is on disk when it returns."""

import contextlib
import os
import random
import time
from pathlib import Path
from urllib.parse import unquote

import apsw

from holdfast.errors import Misconfigured
from holdfast.store.sqlite.errors import FAILED, SETTING, translate

OLDEST_SQLITE = (3, 51, 3)
"""Before it, a checkpoint at the wrong moment could damage a database that several processes use."""

PATIENCE = 5.0
"""Seconds to wait for the write lock."""

_LONGEST_NAP = 0.005
_CACHE_KIB = 32 * 1024
_WAL_PAGES = 4_000
_WAL_BYTES_KEPT = 64 * 1024 * 1024


def file_of(url: str) -> Path:
    """The file a URL names, its directory being there; raises `Misconfigured` with what to do."""
    name, _, options = url.partition("://")[2].partition("?")
    name = unquote(name)
    if name in ("", "/", ":memory:", "/:memory:"):
        raise Misconfigured(f"{SETTING}: jobs must outlive the process: name a file, as in sqlite:///holdfast.db")
    if not name.startswith("/"):
        raise Misconfigured(
            f"{SETTING}: {url!r} names a host: write sqlite:///file.db, or sqlite:////srv/file.db for an absolute path"
        )
    if options:
        raise Misconfigured(f"{SETTING}: sqlite takes no options: leave out everything from '?' on")
    file = Path(name[1:])
    if not os.path.isdir(file.parent):  # noqa: PTH112 - False, too, where this user may not look
        raise Misconfigured(
            f"{SETTING}: there is no directory {file.parent.absolute()} that this user can enter: "
            "create it, or name another file"
        )
    if file.is_dir():
        raise Misconfigured(f"{SETTING}: {file} is a directory: name a file in it, as in sqlite:///{file}/holdfast.db")
    return file


def connect(file: Path) -> apsw.Connection:
    """A connection whose commits are on disk when they return; raises `Misconfigured` with what to do."""
    if tuple(int(part) for part in apsw.sqlite_lib_version().split(".")[:3]) < OLDEST_SQLITE:
        raise Misconfigured(
            f"SQLite {apsw.sqlite_lib_version()} can damage a file that several processes use: "
            "install one that is newer, with 'pip install --upgrade apsw'"
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
    """Make the file readable by its owner alone; SQLite gives its side files the same mode.

    A file that is there is not touched: to open and close it would drop this process's locks on it.
    """
    with contextlib.suppress(OSError):  # if it cannot be made, the check that follows says so
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))


def _set_up(db: apsw.Connection, file: Path) -> None:
    wait = _Patience()
    db.set_busy_handler(wait)
    if _switch_to_wal(db, wait) != "wal":
        raise Misconfigured(f"{SETTING}: the file system of {file.absolute()} has no shared memory: use a local disk")
    # A plan for each statement, whatever its values: without it, many are planned anew at each run.
    db.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    db.pragma("synchronous", "FULL")
    db.pragma("temp_store", "MEMORY")
    db.pragma("cache_size", -_CACHE_KIB)
    db.pragma("wal_autocheckpoint", _WAL_PAGES)
    db.pragma("journal_size_limit", _WAL_BYTES_KEPT)


def _switch_to_wal(db: apsw.Connection, wait: "_Patience") -> str:
    """The journal's mode afterwards. The switch does not wait by itself, and ten processes may start at once."""
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


class _Patience:
    """Waits for a lock by short naps of random length: SQLite's own are long, and the same in every process."""

    def __init__(self) -> None:
        self._until = 0.0

    def __call__(self, attempt: int) -> bool:
        if attempt == 0:
            self._until = time.monotonic() + PATIENCE
        elif time.monotonic() > self._until:
            return False
        time.sleep(random.uniform(0, min(_LONGEST_NAP, 0.0002 * (attempt + 1))))
        return True
