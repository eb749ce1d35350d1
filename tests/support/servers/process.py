"""Run a server program as a child that ends with us, as an unprivileged user when we are root."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PR_SET_PDEATHSIG = 1
FOLDER_PREFIX = "holdfast-servers-"
LOCK = "keeper.lock"
SETTLED = 10  # seconds after which a keeper surely holds the lock it created


class Identity(TypedDict, total=False):
    """Whom a child runs as, in the words of `subprocess`; empty when as ourselves."""

    user: int
    group: int
    extra_groups: list[int]


@functools.cache
def identity() -> Identity:
    """Servers refuse to run as root, rightly: give them `nobody` then."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def make_folder(path: Path) -> Path:
    """Create a folder that only the server's user can read."""
    path.mkdir(mode=0o700)
    if "user" in identity():
        os.chown(path, identity()["user"], identity()["group"])
    return path


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for server data, removed afterwards; on a disk, since durability costs what it costs there."""
    parent = Path(os.environ.get("TMPDIR") or ("/var/tmp" if Path("/var/tmp").is_dir() else tempfile.gettempdir()))
    _sweep(parent)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=parent))
    folder.chmod(0o711)  # the servers' user passes through to its own folders
    try:
        with (folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove what keepers that were killed left behind: their lock is free."""
    for lock in parent.glob(f"{FOLDER_PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open("r+") as file:  # another user's, in use, or gone meanwhile
            aged = time.time() - lock.stat().st_mtime > SETTLED
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if aged and lock.stat().st_uid == os.geteuid():
                shutil.rmtree(lock.parent, ignore_errors=True)


def run(command: Sequence[str | Path], *, executable: Path | None = None, cwd: Path | None = None) -> str:
    """Run a command to its end as the server's user and give its output; raise with its last words if it failed."""
    done = subprocess.run(
        command,
        executable=executable,
        cwd=cwd or "/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        **identity(),
    )
    if done.returncode != 0:
        message = f"{Path(command[0]).name} failed: {last_words(done.stdout)}"
        raise ServerFailedError(message)
    return done.stdout


def start(command: Sequence[str | Path], *, executable: Path, folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a server in the background. It is killed when the calling thread ends, so call it from the main one."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            executable=executable,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Safe here: the keeper has no other threads by the time it starts a server.
            preexec_fn=functools.partial(_die_with, os.getpid()) if sys.platform == "linux" else None,  # noqa: PLW1509
            **identity(),
        )


def stop(process: subprocess.Popen[bytes], by: signal.Signals) -> None:
    """End a server and wait until it is gone; its data is thrown away, so there is nothing to save."""
    if process.poll() is None:
        process.send_signal(by)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_words(log: str) -> str:
    """The last line that says something, shortened."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][-300:] if lines else "it said nothing"


class ServerFailedError(Exception):
    """A server program did not do what it should; the message is for people."""


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
    if os.getppid() != parent:  # it died before the request stood
        os._exit(1)
