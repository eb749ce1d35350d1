"""Type checkers see the arguments of `enqueue` and the type of the result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
def test_a_type_checker_sees_arguments_and_results(pytestconfig):
    cache = pytestconfig.cache.mkdir("mypy-of-jobs")
    strict = ["--strict", "--config-file", os.devnull, "--ignore-missing-imports", "--follow-imports", "silent"]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *strict, "--cache-dir", str(cache), str(HERE / "typed.py")],
        cwd=HERE,
        env={**os.environ, "MYPYPATH": str(HERE.parents[1] / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
