"""The command as people run it: in a process of its own, in an empty folder, with a clean environment."""

import os
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest


class Ended(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """Its only line on standard error."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("holdfast: ")
        return lines[0].removeprefix("holdfast: ")


Run = Callable[..., Ended]

START = "from holdfast.cli.main import main; main()"


@pytest.fixture
def environment():
    """The environment of commands: nothing of ours in it, and narrow terminals do not wrap."""
    ours = ("HOLDFAST_", "DATABASE_URL", "DB_DSN", "PORT", "COLUMNS")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.fixture
def holdfast(tmp_path, environment) -> Run:
    """Run `holdfast` with these arguments; keywords are variables, `start` is the program before it."""

    def run(*arguments, start=START, **variables) -> Ended:
        done = subprocess.run(
            [sys.executable, "-c", start, *map(str, arguments)],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def cli(tmp_path, environment, monkeypatch, capsys) -> Run:
    """The same in this process, which is quicker: for all but how a process starts and ends."""
    from holdfast.cli.main import run as run_here

    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)

    def run(*arguments, **variables) -> Ended:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            code = run_here([str(each) for each in arguments])
        said = capsys.readouterr()
        return Ended(code, said.out, said.err)

    return run
