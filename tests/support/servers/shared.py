"""Servers shared by the processes of a test run, each started at its first use."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.servers import CHECKOUT, Missing, Server, decode, encode
from tests.support.servers.given import VARIABLES
from tests.support.servers.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OWNER = "owner.lock"


@dataclass(frozen=True)
class Shared:
    """Shared state of a run: a folder with a line of JSON for each server."""

    folder: Path

    def get(self, name: str) -> Server | Missing:
        """Return the named server; start it at its first use."""
        with (self.folder / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            note = self.folder / f"{name}.json"
            if not note.exists():
                note.write_text(self._start(name))
            return decode(note.read_text())[name]

    def beside(self, name: str) -> dict[str, str] | Missing:
        """Start the servers that the named one needs; return the variables with their URLs."""
        environment = {}
        for need in RECIPES[name].needs:
            found = self.get(need)
            if isinstance(found, Missing):
                return Missing(f"it needs {need}: {found.reason}")
            environment[VARIABLES[need]] = found.url
        return environment

    def _start(self, name: str) -> str:
        environment = self.beside(name)
        if isinstance(environment, Missing):
            return encode({name: environment})
        return _start_keeper(name, self.folder, environment)

    def known(self) -> dict[str, Server | Missing]:
        """Return the servers that were used."""
        notes = sorted(self.folder.glob("*.json"))
        return {name: each for note in notes for name, each in decode(note.read_text()).items()}


@contextmanager
def shared() -> Iterator[Shared]:
    """Own the servers of a run; they end with the block or with this process."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-run-"))
    try:
        with (folder / OWNER).open("w") as owner:
            fcntl.flock(owner, fcntl.LOCK_EX)
            yield Shared(folder)
        for alive in folder.glob("*.alive"):
            with alive.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # until its keeper has exited
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _start_keeper(name: str, folder: Path, environment: Mapping[str, str]) -> str:
    """Start a keeper that ends with the owner of the run; return its output line."""
    with (folder / f"{name}.alive").open("w") as alive, (folder / f"{name}.errors").open("w+") as errors:
        fcntl.flock(alive, fcntl.LOCK_EX)  # the keeper inherits it
        keeper = subprocess.Popen(
            [sys.executable, "-m", "tests.support.servers", "--while-locked", folder / OWNER, name],
            cwd=CHECKOUT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
            pass_fds=[alive.fileno()],
        )
        assert keeper.stdout is not None
        with keeper.stdout as output:
            line = output.readline()
        if not line:
            errors.seek(0)
            raise RuntimeError(f"the keeper of {name} failed, with code {keeper.wait()}: {errors.read()}")
        keeper.returncode = 0  # the keeper outlives this process: do not wait for it
        return line
