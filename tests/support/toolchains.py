"""Toolchains of other languages, and the packages in `clients` that they build. All of them are optional."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
GO_CLIENT = ROOT / "clients" / "go"
TYPESCRIPT_CLIENT = ROOT / "clients" / "typescript"
MIN_GO = (1, 24)
MIN_NODE = (20,)


class MissingToolchain(Exception):
    """A toolchain is not on this machine, or too old; the text says which."""


class CommandFailed(Exception):
    """A command of a toolchain failed; the text has its output."""


def require_go() -> None:
    """Raise `MissingToolchain` unless Go is installed."""
    _require("go", ("go", "env", "GOVERSION"), "go", MIN_GO)


def require_node() -> None:
    """Raise `MissingToolchain` unless Node and npm are installed."""
    if shutil.which("npm") is None:
        raise MissingToolchain("npm is not installed")
    _require("node", ("node", "--version"), "v", MIN_NODE)


def _require(name: str, version: tuple[str, ...], prefix: str, least: tuple[int, ...]) -> None:
    needed = ".".join(map(str, least))
    if shutil.which(name) is None:
        raise MissingToolchain(f"{name} is not installed; version {needed} or newer is needed")
    text = run(*version).strip().removeprefix(prefix)
    numbers = tuple(int("".join(filter(str.isdigit, part)) or 0) for part in text.split(".")[:2])
    if numbers < least:
        raise MissingToolchain(f"{name} is version {text}; version {needed} or newer is needed")


def run(*command: str, folder: Path = ROOT, timeout: float = 600) -> str:
    """Run a command and return its output. Raises `CommandFailed`."""
    done = subprocess.run(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False
    )
    if done.returncode:
        raise CommandFailed(f"{' '.join(command)} ended with code {done.returncode}:\n{done.stdout}")
    return done.stdout


def build_go(package: str, folder: Path, output: Path) -> Path:
    """Build a Go program; return its path."""
    require_go()
    run("go", "build", "-o", str(output), package, folder=folder)
    return output


def build_typescript() -> Path:
    """Install the locked development packages, compile the package and its programs; return its folder."""
    require_node()
    with _lock("holdfast-typescript"):
        compiler = TYPESCRIPT_CLIENT / "node_modules" / ".bin" / "tsc"
        if not compiler.exists():
            try:
                run("npm", "ci", "--no-audit", "--no-fund", folder=TYPESCRIPT_CLIENT)
            except CommandFailed as error:
                raise MissingToolchain(f"the TypeScript compiler cannot be installed: {error}") from error
        for project in ("tsconfig.json", "tsconfig.test.json"):
            run(str(compiler), "-p", project, folder=TYPESCRIPT_CLIENT)
    return TYPESCRIPT_CLIENT


@contextmanager
def _lock(name: str) -> Iterator[None]:
    """Hold a lock that is shared by the processes of a test run."""
    with (Path(tempfile.gettempdir()) / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
