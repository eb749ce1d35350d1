"""Lint the OpenAPI description, generate clients and compile them: `./dev openapi [NAME…]`.

Uses the toolchains on this machine: Node, Go, Rust, Java with Maven, Python. A step whose toolchain is missing is named
at the end; with CI=true it fails. Packages are downloaded once, with the ordinary clients, into a cache outside the
checkout (`$XDG_CACHE_HOME/holdfast/openapi`). `--list` prints the steps.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.fuzz import KEY, a_node  # noqa: E402 - needs the path set above

if TYPE_CHECKING:
    from collections.abc import Callable

DESCRIPTION = ROOT / "docs" / "reference" / "openapi.json"
CALLS = ROOT / "tools" / "openapi_clients"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "holdfast" / "openapi"
NPM_PACKAGES = {
    "@hey-api/openapi-ts": "0.95.0",
    "@redocly/cli": "2.77.0",
    "@stoplight/spectral-cli": "6.16.3",
    "@types/node": "20.19.0",
    "openapi-fetch": "0.17.0",
    "openapi-typescript": "7.13.0",
    "typescript": "5.9.3",
}
OAPI_CODEGEN = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2"
PYTHON_PACKAGES = ("openapi-python-client==0.29.1", "ruff==0.14.4")
GENERATOR = "7.17.0"
TSC = ("--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext")


class Failed(Exception):
    """A command of a step failed; the text is its output."""


def run(*command: object, at: Path, env: dict[str, str] | None = None) -> str:
    """Run a command and return its output. Raises `Failed`."""
    finished = subprocess.run(
        [str(part) for part in command],
        cwd=at,
        env=os.environ | (env or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise Failed(f"$ {' '.join(str(part) for part in command)}\n{finished.stdout}")
    return finished.stdout


# Tools, installed once


def npm(name: str) -> Path:
    """Return the path of a command from the npm packages."""
    folder = CACHE / "npm"
    wanted = json.dumps({"private": True, "type": "module", "dependencies": NPM_PACKAGES}, indent=1)
    stamp = folder / "installed.json"
    if not stamp.exists() or stamp.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text(wanted)
        run("npm", "install", "--no-audit", "--no-fund", "--legacy-peer-deps", at=folder)
        stamp.write_text(wanted)
    return folder / "node_modules" / ".bin" / name


def oapi_codegen() -> Path:
    """Return the path of oapi-codegen."""
    folder = CACHE / "go" / OAPI_CODEGEN.rpartition("@")[2]
    if not (folder / "oapi-codegen").exists():
        folder.mkdir(parents=True, exist_ok=True)
        run("go", "install", OAPI_CODEGEN, at=folder, env={"GOBIN": str(folder), "GOFLAGS": "-mod=mod"})
    return folder / "oapi-codegen"


def openapi_generator() -> Path:
    """Return the path of the archive of openapi-generator."""
    archive = CACHE / "java" / f"openapi-generator-cli-{GENERATOR}.jar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        artifact = f"org.openapitools:openapi-generator-cli:{GENERATOR}"
        run("mvn", "-q", "-B", "dependency:get", f"-Dartifact={artifact}", at=archive.parent)
        copy = ("dependency:copy", f"-Dartifact={artifact}", f"-DoutputDirectory={archive.parent}")
        run("mvn", "-q", "-B", *copy, at=archive.parent)
    return archive


def python_tools() -> Path:
    """Return the folder of the commands of a Python environment with the generator."""
    folder = CACHE / "python"
    stamp = folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != "\n".join(PYTHON_PACKAGES):
        run(sys.executable, "-m", "venv", "--clear", folder, at=ROOT)
        run(folder / "bin" / "python", "-m", "pip", "install", "-q", *PYTHON_PACKAGES, at=ROOT)
        stamp.write_text("\n".join(PYTHON_PACKAGES))
    return folder / "bin"


# Steps: each gets an empty folder


def redocly(at: Path) -> None:
    """Lint with the recommended rules of redocly."""
    run(npm("redocly"), "lint", DESCRIPTION, at=at)


def spectral(at: Path) -> None:
    """Lint with the OpenAPI rules of spectral."""
    (at / "rules.json").write_text('{"extends": ["spectral:oas"]}')
    run(npm("spectral"), "lint", DESCRIPTION, "--ruleset", "rules.json", at=at)


def openapi_typescript(at: Path) -> None:
    """Generate types, compile a program that uses them with openapi-fetch, and run it."""
    run(npm("openapi-typescript"), DESCRIPTION, "-o", "schema.ts", at=at)
    (at / "package.json").write_text('{"type": "module"}')
    (at / "node_modules").symlink_to(CACHE / "npm" / "node_modules")
    shutil.copy(CALLS / "calls.ts", at)
    run(npm("tsc"), *TSC, "--lib", "es2022,dom,dom.iterable", "calls.ts", at=at)
    call("node", "calls.js", at=at)


def hey_api(at: Path) -> None:
    """Generate a client and compile it."""
    run(npm("openapi-ts"), "-i", DESCRIPTION, "-o", "client", at=at)
    (at / "node_modules").symlink_to(CACHE / "npm" / "node_modules")
    options = ("--strict", "--skipLibCheck", "--noEmit", "--target", "es2022", "--module", "esnext")
    more = ("--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable", "--types", "node")
    run(npm("tsc"), *options, *more, *sorted(at.glob("client/*.ts")), at=at)


def oapi_codegen_go(at: Path) -> None:
    """Generate a client, compile a program that uses it, and run it."""
    (at / "holdfast").mkdir()
    options = ("-generate", "types,client", "-package", "holdfast", "-o", "holdfast/client.gen.go")
    run(oapi_codegen(), *options, DESCRIPTION, at=at)
    shutil.copy(CALLS / "calls.go", at / "main.go")
    run("go", "mod", "init", "clients", at=at)
    run("go", "mod", "tidy", at=at)
    run("go", "vet", "./...", at=at)
    call("go", "run", ".", at=at)


def python_client(at: Path) -> None:
    """Generate a client and run a program that uses it."""
    tools = python_tools()
    env = {"PATH": f"{tools}:{os.environ['PATH']}"}
    options = ("--output-path", at / "holdfast_client", "--meta", "none", "--fail-on-warning")
    run(tools / "openapi-python-client", "generate", "--path", DESCRIPTION, *options, at=at, env=env)
    run(tools / "python", "-m", "compileall", "-q", "holdfast_client", at=at)
    shutil.copy(CALLS / "calls.py", at)
    call(tools / "python", "calls.py", at=at)


def generate(language: str, at: Path, *options: str) -> None:
    """Generate a client with openapi-generator."""
    run("java", "-jar", openapi_generator(), "generate", "-i", DESCRIPTION, "-g", language, "-o", at, *options, at=at)


def generator_go(at: Path) -> None:
    """Generate a client and compile it."""
    # Without the prefix, constants of different enumerations have the same names.
    generate("go", at, "--additional-properties=enumClassPrefix=true")
    run("go", "mod", "tidy", at=at)
    run("go", "build", "./...", at=at)


def generator_rust(at: Path) -> None:
    """Generate a client and compile it."""
    generate("rust", at)
    run("cargo", "check", "-q", at=at, env={"CARGO_TARGET_DIR": str(CACHE / "rust")})


def generator_java(at: Path) -> None:
    """Generate a client and compile it."""
    generate("java", at, "--library", "native")
    run("mvn", "-q", "-B", "-DskipTests", "-Dmaven.javadoc.skip=true", "compile", at=at)


def call(*command: object, at: Path) -> None:
    """Run a program that calls a node of its own through a generated client."""
    with (
        TemporaryDirectory(prefix="holdfast-node-") as folder,
        a_node(f"sqlite:///{folder}/jobs.db", Path(folder, "node.log")) as address,
    ):
        run(*command, at=at, env={"HOLDFAST_API_URL": address, "HOLDFAST_API_KEY": KEY})


class Step(NamedTuple):
    """Check of the description, and the commands that it needs."""

    action: Callable[[Path], None]
    needs: tuple[str, ...]


STEPS = {
    "redocly": Step(redocly, ("node", "npm")),
    "spectral": Step(spectral, ("node", "npm")),
    "openapi-typescript": Step(openapi_typescript, ("node", "npm")),
    "hey-api": Step(hey_api, ("node", "npm")),
    "oapi-codegen": Step(oapi_codegen_go, ("go",)),
    "openapi-python-client": Step(python_client, ()),
    "openapi-generator-go": Step(generator_go, ("java", "mvn", "go")),
    "openapi-generator-java": Step(generator_java, ("java", "mvn")),
    "openapi-generator-rust": Step(generator_rust, ("java", "mvn", "cargo")),
}


def main(arguments: list[str]) -> int:
    """Run the steps that the arguments name, or all."""
    if "--list" in arguments:
        sys.stdout.write("".join(f"{name}\n" for name in STEPS))
        return 0
    unknown = [name for name in arguments if name not in STEPS]
    if unknown:
        sys.stdout.write(f"no such step: {', '.join(unknown)}; --list prints the steps\n")
        return 2
    failed, missing = [], []
    for name in arguments or STEPS:
        step = STEPS[name]
        absent = [command for command in step.needs if shutil.which(command) is None]
        if absent:
            missing.append(f"{name} needs {', '.join(absent)}")
            continue
        began = time.monotonic()
        with TemporaryDirectory(prefix=f"holdfast-{name}-") as folder:
            try:
                step.action(Path(folder))
            except Failed as error:
                failed.append(name)
                sys.stdout.write(f"{str(error)[-6000:]}\n")
        sys.stdout.write(f"{name}: {'FAILED' if name in failed else 'ok'} in {time.monotonic() - began:.0f} s\n")
        sys.stdout.flush()
    for line in missing:
        sys.stdout.write(f"NOT CHECKED: {line}: install it\n")
    return 1 if failed or (missing and os.environ.get("CI") == "true") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
