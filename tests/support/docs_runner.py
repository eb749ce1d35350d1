"""Run the code blocks of a documentation page in order.

| block | how it is run |
|---|---|
| `sh` | in one shell for the whole page; it must succeed |
| `python` | in one interpreter for the whole page; with a first line `# name.py` it is saved as that file |
| `json`, `yaml` | parsed |
| `text` | right after a block that was run: its expected output; `…` matches anything, a line `…` any lines |

A block after the comment `<!-- stays: text -->` runs in its own terminal until the end of the page; the next block
starts when it has printed that text.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec.yaml

from tests.support.long import LONG

CHECKOUT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 150.0
"""Timeout of one block, long enough for a loaded machine."""

_FENCE = re.compile(r"(?:^<!-- (stays): (.*?) -->\n)?^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
_DONE = "-- end of block --"
_SHELL = f"""set -eu
curl() {{ command curl --fail-with-body "$@"; }}  # fail on an HTTP error
while read -r block; do . "$block" < /dev/null; printf '\\n%s\\n' '{_DONE}'; done"""
_PYTHON = f"""
import sys
sys.path.insert(0, "")
names = {{"__name__": "page"}}
for block in sys.stdin:
    exec(compile(open(block.strip()).read(), block.strip(), "exec"), names)
    print("\\n{_DONE}", flush=True)
"""


class Block(NamedTuple):
    """Fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    stays: str | None
    """Output that shows that a permanent block is ready."""

    @property
    def place(self) -> str:
        """Page and line, for messages."""
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(page.name, text[: found.start(4)].count("\n"), found[3], found[4], found[2])
        for found in _FENCE.finditer(text)
    ]


def file_name(text: str) -> str | None:
    """Return the name under which a Python block is saved, if its first line has one."""
    found = _FILE.match(text)
    return found[1] if found else None


def matches(output: str, expected: str) -> bool:
    """Compare output to a pattern in which `…` matches anything in a line, and a line `…` any lines."""
    lines = [" ".join(line.split()) for line in expected.strip().splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + r" ?\n" for line in lines
    )
    plain = "".join(" ".join(line.split()) + "\n" for line in output.strip().splitlines())
    return re.fullmatch(pattern, plain) is not None


class _Interpreter:
    """Shell or Python process that runs files in turn."""

    def __init__(self, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, file: Path) -> tuple[bool, str]:
        """Run a file; return whether it succeeded, and its output."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(TIMEOUT_S, self._process.kill)
        watch.start()
        self._process.stdin.write(f"{file}\n")
        self._process.stdin.flush()
        output: list[str] = []
        try:
            for line in self._process.stdout:
                if line == f"{_DONE}\n":
                    return True, "".join(output).removesuffix("\n")  # the one printed before the marker
                output.append(line)
        finally:
            watch.cancel()
        return False, "".join(output)

    def end(self) -> None:
        """Close the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


class _Terminal:
    """Terminal that runs a block until the end of the page."""

    def __init__(self, block: Block, file: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._log = file.with_suffix(".log")
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                ["bash", "-eu", str(file)],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + TIMEOUT_S
        while (block.stays or "") not in self.output():
            assert self.process.poll() is None, f"{block.place} ended: {self.output()}"
            assert time.monotonic() < until, f"{block.place} did not print {block.stays!r}: {self.output()}"
            time.sleep(0.05)

    def output(self) -> str:
        """Return the output so far."""
        return self._log.read_text()

    def end(self) -> int:
        """Send Ctrl-C and return the exit code."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            return self.process.wait(100)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise


class Reader:
    """Runs the blocks of pages in a folder."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self._terminals: list[_Terminal] = []
        self._number = 0

    def close(self) -> list[int]:
        """Stop the permanent blocks, the latest first; return their exit codes."""
        codes = [terminal.end() for terminal in reversed(self._terminals)]
        self._terminals.clear()
        return codes

    def read(self, page: Path, replace: Mapping[str, str] | None = None) -> list[str]:
        """Run all blocks of a page and return their outputs; `replace` substitutes words in the blocks."""
        outputs: list[str] = []
        shell = python = None
        try:
            for block in blocks(page):
                text = block.text
                for word, other in (replace or {}).items():
                    text = text.replace(word, other)
                file = self._file(block, text)
                if block.stays is not None:
                    self._terminals.append(_Terminal(block, file, self.folder, self.environment))
                elif block.language == "sh":
                    shell = shell or _Interpreter(["bash", "-c", _SHELL], self.folder, self.environment)
                    outputs.append(self._run(shell, file, block))
                elif block.language == "python" and (name := file_name(text)):
                    (self.folder / name).write_text(text)
                elif block.language == "python":
                    python = python or _Interpreter([sys.executable, "-c", _PYTHON], self.folder, self.environment)
                    outputs.append(self._run(python, file, block))
                elif block.language == "json":
                    json.loads(text)
                elif block.language == "yaml":
                    msgspec.yaml.decode(text)
                elif outputs and self._follows(page, block):
                    assert matches(outputs[-1], text), f"{block.place}: the output was\n{outputs[-1]}"
        finally:
            for each in (shell, python):
                if each is not None:
                    each.end()
        return outputs

    def _file(self, block: Block, text: str) -> Path:
        self._number += 1
        file = self.folder / f".block-{self._number}"
        file.write_text(text)
        return file

    def _run(self, interpreter: _Interpreter, file: Path, block: Block) -> str:
        succeeded, output = interpreter.run(file)
        terminals = "".join(f"\nOutput of a terminal:\n{terminal.output()[-2_000:]}" for terminal in self._terminals)
        assert succeeded, f"{block.place} failed:\n{block.text}\nOutput:\n{output}{terminals}"
        return output

    @staticmethod
    def _follows(page: Path, block: Block) -> bool:
        """Tell if at most one line separates the block from the previous one."""
        before = page.read_text().splitlines()[: block.line - 1]
        return "```" in before[-2:]


def checkout(folder: Path) -> Path:
    """Create a clone with what `./dev` needs; its source is that of the working tree."""
    clone = folder / "holdfast"
    files = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "dev", "requirements", "README.md"],
        cwd=CHECKOUT, text=True,
    )  # fmt: skip
    for name in filter(None, files.split("\0")):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_bytes((CHECKOUT / name).read_bytes())
    (clone / "dev").chmod(0o755)
    (clone / "src").symlink_to(CHECKOUT / "src")
    if not LONG:
        _lend_packages(clone)
    return clone


def _lend_packages(clone: Path) -> None:
    """Make `./dev` use the packages of this environment; only long tests install them."""
    for name, start in (("python", ""), ("holdfast", "-m holdfast ")):
        script = clone / ".venv" / "bin" / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {start}"$@"\n')
        script.chmod(0o755)
    state = """if True:
        import json, runpy
        dev = runpy.run_path("dev")
        print(json.dumps({"base": dev["base"](), "run": dev["fingerprint"]("run")}))"""
    output = subprocess.check_output(["python3", "-c", state], cwd=clone, text=True)
    (clone / ".venv" / "holdfast.json").write_text(output)


def pages() -> Iterator[Path]:
    """Yield all pages to test."""
    yield CHECKOUT / "README.md"
    yield from sorted((CHECKOUT / "docs").rglob("*.md"))
