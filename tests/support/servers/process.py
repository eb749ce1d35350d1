"""Server processes that end with their parent, and run without privileges even if it is root."""

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
UNPRIVILEGED_UID = 65_534  # by convention on Linux
FOLDER_PREFIX = "holdfast-servers-"
LOCK = "keeper.lock"
LOCK_GRACE_S = 10  # a keeper holds the lock of its folder after this time


class Identity(TypedDict, total=False):
    """User of a child process, as arguments of `subprocess`; empty for the current user."""

    user: int
    group: int
    extra_groups: list[int]


@functools.cache
def identity() -> Identity:
    """Return the unprivileged system user if this process is root, because servers refuse root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwuid(UNPRIVILEGED_UID)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def make_folder(path: Path) -> Path:
    """Create a folder that only the user of the servers can read."""
    path.mkdir(mode=0o700)
    if "user" in identity():
        os.chown(path, identity()["user"], identity()["group"])
    return path


@contextmanager
def scratch() -> Iterator[Path]:
    """Create a folder for server data within a block; on disk by default, where fsync has its real cost."""
    parent = Path(os.environ.get("TMPDIR") or ("/var/tmp" if Path("/var/tmp").is_dir() else tempfile.gettempdir()))
    _remove_stale(parent)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir=parent))
    folder.chmod(0o711)  # the user of the servers must pass through
    try:
        with (folder / LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_stale(parent: Path) -> None:
    """Remove the folders of killed keepers, whose locks are free."""
    for lock in parent.glob(f"{FOLDER_PREFIX}*/{LOCK}"):
        with suppress(OSError), lock.open("r+") as file:  # of another user, in use, or already removed
            aged = time.time() - lock.stat().st_mtime > LOCK_GRACE_S
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if aged and lock.stat().st_uid == os.geteuid():
                shutil.rmtree(lock.parent, ignore_errors=True)


def run(command: Sequence[str | Path], *, executable: Path | None = None, cwd: Path | None = None) -> str:
    """Run a command as the user of the servers and return its output; raise if it failed."""
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
        message = f"{Path(command[0]).name} failed: {last_line(done.stdout)}"
        raise ServerFailedError(message)
    return done.stdout


def start(command: Sequence[str | Path], *, executable: Path, folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start a server. It is killed when the calling thread ends, so call this from the main thread."""
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
    """Stop a server and wait until it has ended."""
    if process.poll() is None:
        process.send_signal(by)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_line(log: str) -> str:
    """Return the last line that is not empty, shortened."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][-300:] if lines else "no output"


class ServerFailedError(Exception):
    """A server program failed."""


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
    if os.getppid() != parent:  # the parent died before the call
        os._exit(1)
