"""Fixtures that run `holdfast` in an empty folder with a clean environment."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.support.service_thread import run_service


class Finished(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The only line on standard error, without its prefix."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("holdfast: ")
        return lines[0].removeprefix("holdfast: ")


Run = Callable[..., Finished]

START = "from holdfast.cli.main import main; main()"


@pytest.fixture
def environment():
    """Environment without settings of holdfast and without a terminal width."""
    ours = ("HOLDFAST_", "DATABASE_URL", "DB_DSN", "PORT", "COLUMNS")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


@pytest.fixture
def holdfast(tmp_path, environment) -> Run:
    """Run `holdfast` in a process; keywords are environment variables, `start` is the Python program."""

    def run(*arguments, start=START, **variables) -> Finished:
        done = subprocess.run(
            [sys.executable, "-c", start, *map(str, arguments)],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def cli(tmp_path, environment, monkeypatch, capsys) -> Run:
    """Run `holdfast` in this process, which is faster; for all but tests of startup and exit."""
    from holdfast.cli.main import run as run_here

    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)

    def run(*arguments, **variables) -> Finished:
        capsys.readouterr()
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            code = run_here([str(argument) for argument in arguments])
        output = capsys.readouterr()
        return Finished(code, output.out, output.err)

    return run


@pytest.fixture
def node(database_url):
    with run_service(database_url) as found:
        yield found


@pytest.fixture(params=["service", "database"])
def ask(request, cli, database_url, node):
    """Run a command against the database or against the service."""
    target = {"HOLDFAST_DATABASE_URL": database_url}
    if request.param == "service":
        target = {"HOLDFAST_API_URL": node.url, "HOLDFAST_API_KEY": node.key}
    return lambda *arguments: cli(*arguments, **target)


@pytest.fixture
def ask_json(ask):
    """Run a command with --json and return the decoded output."""

    def run(*arguments, code=0):
        ended = ask(*arguments, "--json")
        assert (ended.code, ended.err) == (code, ""), ended
        return json.loads(ended.out)

    return run
