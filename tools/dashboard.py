"""Build the dashboard into the package: `./dev dashboard`. Needs Node; running holdfast does not.

`./dev dashboard --types` only regenerates the TypeScript types of the API.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tools.dashboard_types import generate  # noqa: E402 - needs the path set above

SOURCE = ROOT / "dashboard"
BUILT = ROOT / "src" / "holdfast" / "dashboard"
TYPES = SOURCE / "src" / "api" / "types.gen.ts"
RECORD = "build.json"
"""File in the build that records the hash of its source."""

MIN_NODE = (20, 19)
_IGNORED = {"node_modules", "dist", ".vite"}


def source_hash() -> str:
    """Return the hash of everything that the build depends on, including the lock file."""
    digest = sha256()
    for path in sources():
        content = path.read_bytes()
        digest.update(f"{path.relative_to(SOURCE).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def sources() -> list[Path]:
    """Return the source files in a stable order, including tests, because a build has passed them.

    The generated types are excluded: they leave no trace in the build, and a change to the API should not require Node.
    """
    paths = []
    for folder, folders, names in os.walk(SOURCE):
        folders[:] = [name for name in folders if name not in _IGNORED]
        paths += [Path(folder, name) for name in names if Path(folder, name) != TYPES]
    return sorted(paths, key=lambda path: path.relative_to(SOURCE).as_posix())


def built_hashes(folder: Path = BUILT) -> dict[str, str]:
    """Return the hash of each file of a build, except for its record."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != RECORD
    }


def write_record(folder: Path = BUILT) -> None:
    """Record the source hash and the file hashes of a build."""
    content = {"source": source_hash(), "files": built_hashes(folder)}
    (folder / RECORD).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="ascii")


def build(folder: Path = BUILT) -> None:
    """Install the locked packages, type-check, test, and build into the folder."""
    TYPES.write_text(generate(), encoding="utf-8")
    npm("ci", "--no-audit", "--no-fund")
    npm("run", "types")
    npm("test")
    npm("run", "build", "--", "--outDir", str(folder), "--emptyOutDir")
    write_record(folder)


def npm(*arguments: str) -> None:
    """Run npm in the source folder of the dashboard."""
    print(f"── npm {' '.join(arguments)}", flush=True)
    subprocess.run(["npm", *arguments], cwd=SOURCE, check=True)


def node_version() -> tuple[int, ...] | None:
    """Return the version of Node, or None if Node or npm is not installed."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return None
    output = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in output.strip().removeprefix("v").split("."))


def main(arguments: list[str]) -> int:
    """Run the command."""
    if arguments == ["--types"]:
        TYPES.write_text(generate(), encoding="utf-8")
        return 0
    if arguments:
        print("usage: ./dev dashboard [--types]", file=sys.stderr)
        return 2
    version = node_version()
    if version is None or version < MIN_NODE:
        installed = "is not installed" if version is None else f"{'.'.join(map(str, version))} is installed"
        print(f"dev: building the dashboard needs Node 20.19 or newer with npm; Node {installed}", file=sys.stderr)
        return 1
    try:
        build()
    except subprocess.CalledProcessError as error:
        print(f"dev: the dashboard was not built: {' '.join(error.cmd)} failed; see the output above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
