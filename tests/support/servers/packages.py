"""Install what is missing with apt, where we may."""

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

from tests.support.servers.process import last_words

if TYPE_CHECKING:
    from collections.abc import Collection

UNPACKED = Path("/var/cache/holdfast-tests")
"""Where programs lie that were taken out of their packages."""


def may_install() -> bool:
    """Root on Debian, Ubuntu and their kin."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: Collection[str], unpack: Collection[str] = ()) -> str | None:
    """Install the packages; give the reason if that failed. One at a time on the machine, as apt demands.

    Of those to unpack only the files are taken, and the libraries they need installed: no service comes with them.
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
    """Take the files out of a package; the libraries that they need."""
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
        raise _FailedError(f"{' '.join(command[:3])} failed: {last_words(done.stdout)}")
    return done.stdout


class _FailedError(Exception):
    """A command failed; the message is for people."""
