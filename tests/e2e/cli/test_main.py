"""Help, version, error messages and exit codes of `holdfast`."""

import subprocess
import sys

import pytest

from holdfast import __version__
from holdfast.cli import exit_codes
from holdfast.cli.main import COMMANDS, HELP
from holdfast.errors import (
    Conflict,
    Contention,
    Forbidden,
    Invalid,
    Misconfigured,
    NotFound,
    OutcomeUnknown,
    RateLimited,
    SchemaMismatch,
    Unauthorized,
    Unavailable,
)


def test_help_lists_every_command(holdfast):
    shown = holdfast("--help")
    assert shown.code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in shown.out
    assert list(HELP) == list(COMMANDS)


@pytest.mark.parametrize("group", [[], ["jobs"], ["dead"]])
def test_a_group_without_a_command_prints_its_help(cli, group):
    ended = cli(*group)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == cli(*group, "--help").out


def test_help_imports_no_command_and_no_driver(holdfast):
    start = (
        "import sys; from holdfast.cli.main import run; run(['--help']); "
        "print([m for m in ('asyncpg', 'asyncmy', 'apsw', 'rich', 'asyncio', 'holdfast.engine') if m in sys.modules])"
    )
    assert holdfast(start=start).out.splitlines()[-1] == "[]"


def test_version_prints_the_version(holdfast):
    assert holdfast("--version").out == f"holdfast {__version__}\n"


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["migrate", "--frob"], "No such option '--frob'"),
        (["bench", "--jobs", "none"], "--jobs"),
        (["bench", "--only", "speed"], "'speed' is not one of enqueue, drain, pickup"),
        (["bench", "ratios"], "give at least one --url"),
        (["bench", "ratios", "--url", "sqlite:///x.db", "--bare-url", "x"], "need each other"),
    ],
)
def test_misuse_prints_one_line_that_names_the_help(holdfast, arguments, message):
    ended = holdfast(*arguments)
    assert ended.code == 2
    assert message in ended.complaint
    assert "--help'" in ended.complaint


def test_a_flag_works_before_and_after_the_command(holdfast, tmp_path):
    assert holdfast("--database-url", "sqlite:///before.db", "migrate").code == 0
    assert holdfast("migrate", "--database-url", "sqlite:///after.db").code == 0
    assert holdfast("--database-url", "sqlite:///x.db", "migrate", "--database-url", "sqlite:///inner.db").code == 0
    assert {file.name for file in tmp_path.glob("*.db")} == {"before.db", "after.db", "inner.db"}


def test_config_names_the_settings_file(holdfast, tmp_path):
    (tmp_path / "mine.toml").write_text('database_url = "sqlite:///mine.db"')
    assert holdfast("migrate", "--config", "mine.toml").code == 0
    assert (tmp_path / "mine.db").exists()
    ended = holdfast("--config", "absent.toml", "migrate")
    assert (ended.code, ended.complaint[:10]) == (2, "--config: ")


def test_an_invalid_setting_is_named(holdfast):
    ended = holdfast("migrate", HOLDFAST_PORT="http")
    assert ended.code == 2
    assert ended.complaint == "HOLDFAST_PORT: invalid value 'http': expected a whole number from 0 to 65535"


@pytest.mark.parametrize(
    "error, code",
    [
        (Misconfigured(""), 2),
        (SchemaMismatch(""), 2),
        (Invalid(""), 2),
        (Unavailable(""), 3),
        (Contention(""), 3),
        (OutcomeUnknown(""), 3),
        (RateLimited("", retry_after=1), 3),
        (NotFound(""), 4),
        (Unauthorized(""), 5),
        (Forbidden(""), 5),
        (Conflict(""), 1),
        (ZeroDivisionError(), 1),
    ],
)
def test_exit_codes_are_stable(error, code):
    assert exit_codes.exit_code_for(error) == code
    assert code in exit_codes.MEANINGS


FAULT = """
import os, sys, holdfast.cli.commands.migrate as m
from holdfast.cli.main import main
from holdfast.errors import *
async def fail(*_): raise eval(os.environ["FAULT"])
m._up = fail
main(["migrate"])
"""


@pytest.mark.parametrize(
    "fault, code, message",
    [
        ("Unavailable('gone\\n away')", 3, "gone away"),
        ("NotFound('no such')", 4, "no such"),
        ("KeyError('bug')", 1, "KeyError: 'bug' (unexpected"),
    ],
)
def test_any_error_is_printed_as_one_line(holdfast, fault, code, message):
    ended = holdfast(start=FAULT, FAULT=fault)
    assert ended.code == code
    assert ended.complaint.startswith(message)


def test_ctrl_c_exits_quietly_with_130(holdfast):
    ended = holdfast(start=FAULT, FAULT="KeyboardInterrupt()")
    assert (ended.code, ended.out, ended.err.strip()) == (130, "", "")


def test_debug_prints_the_traceback(holdfast):
    ended = holdfast(start=FAULT, FAULT="KeyError('bug')", HOLDFAST_DEBUG="1")
    assert ended.code == 1
    assert "Traceback" in ended.err


@pytest.mark.parametrize("arguments", [["migrate", "sql", "--all"], ["--help"]], ids=" ".join)
def test_a_closed_pipe_is_not_an_error(tmp_path, environment, arguments):
    """The command waits on stdin until the reader has closed the pipe, so that every write fails."""
    start = f"import sys; from holdfast.cli.main import main; sys.stdin.read(); main({arguments!r})"
    with subprocess.Popen(
        [sys.executable, "-c", start],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0
