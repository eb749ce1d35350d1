"""Install what is missing with apt, where we may."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.servers.process import last_words

if TYPE_CHECKING:
    from collections.abc import Collection


def may_install() -> bool:
    """Root on Debian, Ubuntu and their kin."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: Collection[str]) -> str | None:
    """Install the packages; give the reason if that failed. One at a time on the machine, as apt demands."""
    with Path("/var/lock/holdfast-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _install(packages)


def _install(packages: Collection[str]) -> str | None:
    print(f"installing {', '.join(packages)} with apt-get", file=sys.stderr, flush=True)
    for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(
            ["apt-get", "-q", *command],
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return f"apt-get {command[0]} failed: {last_words(done.stdout)}"
    return None
