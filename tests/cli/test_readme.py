"""The README's own program, run as it stands."""

import re
import subprocess
import sys
from pathlib import Path

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
