"""Look up known vulnerabilities of the pinned packages with pip-audit.

    ./dev audit [--required]

pip-audit is installed into a temporary environment. If it cannot be installed, or the advisories cannot be reached, the
audit is skipped with exit code 0, so that CI works offline; `--required` makes that an error.
"""

import json
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILES = ("requirements/run.txt", "requirements/dev.txt")
_TIMEOUT_S = 300.0


def main() -> int:
    """Audit all files of requirements; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder, "bin", "python"))
        if error := _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pip-audit")[1]:
            return _skip(f"pip-audit cannot be installed: {error}")
        for file in FILES:
            found, error = _run(
                python, "-m", "pip_audit", "--disable-pip", "--require-hashes", "-f", "json", "-r", file
            )
            try:
                packages = json.loads(found)["dependencies"]
            except (ValueError, KeyError):
                return _skip(f"the advisories cannot be reached: {error}")
            checked = [package for package in packages if "vulns" in package]
            if not checked:
                return _skip("no advisories were found for any package, so they cannot be reached")
            faults = vulnerabilities(checked)
            print(
                "\n".join(f"audit: {file}: {fault}" for fault in faults)
                or f"audit: {file}: {_counts(packages, checked)}"
            )
            if faults:
                return 1
    return 0


def vulnerabilities(packages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each package with known vulnerabilities."""
    return [
        f"{package['name']} {package['version']}: {', '.join(each['id'] for each in package['vulns'])}"
        for package in packages
        if package["vulns"]
    ]


def _counts(packages: Sequence[object], checked: Sequence[object]) -> str:
    unknown = len(packages) - len(checked)
    return f"{len(checked)} packages without known vulnerabilities" + (f", {unknown} not checked" if unknown else "")


def _run(*command: str) -> tuple[str, str]:
    """Run a command; return its output, and the last line of its errors if it failed."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return "", "it took too long"
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return done.stdout, lines[-1] if done.returncode else ""


def _skip(reason: str) -> int:
    print(f"audit: skipped, {reason}")
    return 1 if "--required" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
