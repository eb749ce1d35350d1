"""The README's own program, run as it stands."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import START

README = Path(__file__).resolve().parents[2] / "README.md"
CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def test_the_first_program_does_what_the_readme_says(holdfast, tmp_path, environment):
    blocks = [(kind, text) for kind, text in CODE.findall(README.read_text()) if "shop" in text]
    (_, program), (_, commands), (_, caller) = blocks
    migrate, work = (line.split("#")[0].split()[1:] for line in commands.splitlines())
    (tmp_path / "shop.py").write_text(program)
    assert holdfast(*migrate).code == 0
    python = (sys.executable, "-c")
    with subprocess.Popen([*python, START, *work, "--processes", "1"], cwd=tmp_path, env=environment) as worker:
        try:
            patient = caller.replace("timeout=10", "timeout=60")
            said = subprocess.check_output([*python, patient], cwd=tmp_path, env=environment, text=True, timeout=60)
        finally:
            worker.terminate()
    assert said == "welcome, user 42\n"
    assert worker.returncode == 0


@pytest.fixture
def up(tmp_path, environment):
    """`holdfast up --demo` in an empty folder, answering."""
    command = [sys.executable, "-c", START, "up", "--demo", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stderr:
                if "worker process" in line:
                    break
            reading = threading.Thread(target=process.stderr.read)  # or it would stop when the pipe is full
            reading.start()
            yield process
        finally:
            process.terminate()
            process.wait(100)
            reading.join()


HOLDFAST = f"""holdfast() {{ '{sys.executable}' -c '{START}' "$@"; }}\n"""


def test_the_lines_for_the_command_line_work_as_they_stand(up, tmp_path, environment):
    (lines,) = (text for _, text in CODE.findall(README.read_text()) if "holdfast doctor" in text)
    ran = subprocess.run(
        ["bash", "-euc", HOLDFAST + lines],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith('"hello"\n')
    assert all(f"ok     {check}" in ran.stdout or f"ok  {check}" in ran.stdout for check in ("schema", "workers"))


def test_the_lines_of_the_http_section_work_as_they_stand(up, tmp_path, environment):
    (lines,) = (text for _, text in CODE.findall(README.read_text()) if "hf()" in text)
    ran = subprocess.run(
        ["bash", "-euc", lines], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    submitted, job, cancelled, listed, dead, replay, stats, *stream = ran.stdout.splitlines()
    assert json.loads(submitted)["status"] == "scheduled"
    assert json.loads(job)["attempt_log"] == []
    assert (json.loads(cancelled)["status"], json.loads(cancelled)["reason"]) == ("cancelled", "no longer needed")
    assert {item["status"] for item in json.loads(listed)["items"]} <= {"succeeded"}
    assert "items" in json.loads(dead) or "groups" in json.loads(dead)
    assert json.loads(replay)["changed"] == 0
    assert json.loads(stats)
    assert any(line.startswith("event: job") for line in stream), stream
