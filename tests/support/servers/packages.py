"""Install missing programs with apt, if permitted."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.servers.process import last_line

if TYPE_CHECKING:
    from collections.abc import Collection

UNPACKED = Path("/var/cache/holdfast-tests")
"""Folder of programs that were extracted from their packages."""


def may_install() -> bool:
    """Tell if this is root on a system with apt."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: Collection[str], unpack: Collection[str] = ()) -> str | None:
    """Install packages; return the reason if that failed. A lock allows one installation at a time.

    Packages in `unpack` are only extracted, and their libraries installed, so that no service starts.
    """
    with Path("/var/lock/holdfast-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        print(f"installing {', '.join([*packages, *unpack])} with apt-get", file=sys.stderr, flush=True)
        try:
            _run("apt-get", "-q", "update")
            libraries = [library for package in unpack for library in _unpack(package)]
            if packages or libraries:
                _run("apt-get", "-q", "install", "-y", "--no-install-recommends", *packages, *libraries)
        except _FailedError as error:
            return str(error)
    return None


def _unpack(package: str) -> list[str]:
    """Extract a package; return the libraries that it needs."""
    UNPACKED.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="holdfast-apt-") as folder:
        _run("apt-get", "-q", "download", package, cwd=folder)
        (file,) = Path(folder).glob("*.deb")
        _run("dpkg-deb", "--extract", str(file), str(UNPACKED))
        needs = _run("dpkg-deb", "--field", str(file), "Depends")
    names = [need.split()[0] for need in re.split(r"[,|]", needs)]
    return [name for name in names if name.startswith("lib")]


def _run(*command: str, cwd: str | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise _FailedError(f"{' '.join(command[:3])} failed: {last_line(done.stdout)}")
    return done.stdout


class _FailedError(Exception):
    """A command failed; the message is for people."""
