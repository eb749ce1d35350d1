"""Reads a page of the documentation as somebody does who tries everything in it, in the order it stands there.

| block | what is done with it |
|---|---|
| `sh` | typed into one shell for the whole page; it must end well |
| `python` | run in one interpreter for the whole page; with a first line `# name.py` it is that file |
| `json`, `yaml` | read |
| `text` | right after a block that was run: what that prints, `…` standing for anything, a line of it for any lines |

A comment before a block says more: `<!-- stays: text -->` is typed into a terminal of its own, says that text when it
is at work, and stays until the reader is done.
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
PATIENCE = 150.0
"""Seconds for one block, on a machine that has other things to do."""

_FENCE = re.compile(r"(?:^<!-- (stays): (.*?) -->\n)?^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")
_DONE = "-- that was all --"
_SHELL = f"""set -eu
curl() {{ command curl --fail-with-body "$@"; }}  # what is refused does not pass for done
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
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str
    stays: str | None
    """What it says once it is at work, if it stays."""

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(page.name, text[: found.start(4)].count("\n"), found[3], found[4], found[2])
        for found in _FENCE.finditer(text)
    ]


def matches(said: str, expected: str) -> bool:
    """Whether this was said, `…` standing for anything in its line and a line of `…` for any lines."""
    lines = [" ".join(line.split()) for line in expected.strip().splitlines()]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + r" ?\n" for line in lines
    )
    plain = "".join(" ".join(line.split()) + "\n" for line in said.strip().splitlines())
    return re.fullmatch(pattern, plain) is not None


class _Interpreter:
    """A shell or Python that is handed one file after the other."""

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
        """Whether it came to its end, and what it said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(PATIENCE, self._process.kill)
        watch.start()
        self._process.stdin.write(f"{file}\n")
        self._process.stdin.flush()
        said: list[str] = []
        try:
            for line in self._process.stdout:
                if line == f"{_DONE}\n":
                    return True, "".join(said).removesuffix("\n")  # ours, for what ends without one
                said.append(line)
        finally:
            watch.cancel()
        return False, "".join(said)

    def end(self) -> None:
        """Close it; it has nothing left to do."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


class _Terminal:
    """A terminal in which something stays."""

    def __init__(self, block: Block, file: Path, folder: Path, environment: Mapping[str, str]) -> None:
        self._log = file.with_suffix(".log")
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                ["bash", "-eu", str(file)],
                cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + PATIENCE
        while (block.stays or "") not in self.said():
            assert self.process.poll() is None, f"{block.place} ended: {self.said()}"
            assert time.monotonic() < until, f"{block.place} never said {block.stays!r}: {self.said()}"
            time.sleep(0.05)

    def said(self) -> str:
        """What it has told so far."""
        return self._log.read_text()

    def end(self) -> int:
        """Ctrl-C; how it ended."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            return self.process.wait(100)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise


class Reader:
    """Somebody in a folder, with as many terminals as it takes."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self._terminals: list[_Terminal] = []
        self._number = 0

    def close(self) -> list[int]:
        """End what stayed, the latest first; how each ended."""
        codes = [terminal.end() for terminal in reversed(self._terminals)]
        self._terminals.clear()
        return codes

    def read(self, page: Path, replace: Mapping[str, str] | None = None) -> list[str]:
        """Do all that a page says; what its blocks printed. `replace` has other words for some of the page's."""
        said: list[str] = []
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
                    said.append(self._run(shell, file, block))
                elif block.language == "python" and (named := _FILE.match(text)):
                    (self.folder / named[1]).write_text(text)
                elif block.language == "python":
                    python = python or _Interpreter([sys.executable, "-c", _PYTHON], self.folder, self.environment)
                    said.append(self._run(python, file, block))
                elif block.language == "json":
                    json.loads(text)
                elif block.language == "yaml":
                    msgspec.yaml.decode(text)
                elif said and self._follows(page, block):
                    assert matches(said[-1], text), f"{block.place}: it said\n{said[-1]}"
        finally:
            for each in (shell, python):
                if each is not None:
                    each.end()
        return said

    def _file(self, block: Block, text: str) -> Path:
        self._number += 1
        file = self.folder / f".block-{self._number}"
        file.write_text(text)
        return file

    def _run(self, interpreter: _Interpreter, file: Path, block: Block) -> str:
        ended, said = interpreter.run(file)
        beside = "".join(f"\nBeside it:\n{terminal.said()[-2_000:]}" for terminal in self._terminals)
        assert ended, f"{block.place} failed:\n{block.text}\nIt said:\n{said}{beside}"
        return said

    @staticmethod
    def _follows(page: Path, block: Block) -> bool:
        """Whether only a line or none stands between it and the block before."""
        before = page.read_text().splitlines()[: block.line - 1]
        return "```" in before[-2:]


def checkout(folder: Path) -> Path:
    """A fresh clone, as far as it takes to run what is in the working tree."""
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
    """Have `./dev` find all it would install. The long tests have it do so."""
    for name, start in (("python", ""), ("holdfast", "-m holdfast ")):
        script = clone / ".venv" / "bin" / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {start}"$@"\n')
        script.chmod(0o755)
    state = """if True:
        import json, runpy
        dev = runpy.run_path("dev")
        print(json.dumps({"base": dev["base"](), "run": dev["fingerprint"]("run")}))"""
    found = subprocess.check_output(["python3", "-c", state], cwd=clone, text=True)
    (clone / ".venv" / "holdfast.json").write_text(found)


def pages() -> Iterator[Path]:
    """All that is to be read."""
    yield CHECKOUT / "README.md"
    yield from sorted((CHECKOUT / "docs").rglob("*.md"))
