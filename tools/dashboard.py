"""Build the dashboard into the package: `./dev dashboard`. Needs Node; running holdfast does not.

`./dev dashboard --types` only writes the types that are made from the API's description.
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

from tools.dashboard_types import written  # noqa: E402 - found by the line above

SOURCE = ROOT / "dashboard"
BUILT = ROOT / "src" / "holdfast" / "dashboard"
TYPES = SOURCE / "src" / "api" / "types.gen.ts"
RECORD = "build.json"
"""In the build: of which source it was made."""

OLDEST_NODE = (20, 19)
_IGNORED = {"node_modules", "dist", ".vite"}


def source_hash() -> str:
    """Of everything that the build is made of, its locked packages included."""
    found = sha256()
    for path in sources():
        content = path.read_bytes()
        found.update(f"{path.relative_to(SOURCE).as_posix()}\0{len(content)}\0".encode() + content)
    return found.hexdigest()


def sources() -> list[Path]:
    """Those files, in one order everywhere. Tests are part of it: a build has passed them.

    The types are not: nothing of them is left in a build, and whoever changes the API needs no Node to write them.
    """
    found = []
    for folder, folders, names in os.walk(SOURCE):
        folders[:] = [each for each in folders if each not in _IGNORED]
        found += [Path(folder, name) for name in names if Path(folder, name) != TYPES]
    return sorted(found, key=lambda path: path.relative_to(SOURCE).as_posix())


def built_hashes(folder: Path = BUILT) -> dict[str, str]:
    """Each file of a build, but for the record of it."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != RECORD
    }


def record(folder: Path = BUILT) -> None:
    """Note of which source a build is, and what is in it."""
    kept = {"source": source_hash(), "files": built_hashes(folder)}
    (folder / RECORD).write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="ascii")


def build(folder: Path = BUILT) -> None:
    """Install what is locked, check, test, and build into the folder."""
    TYPES.write_text(written(), encoding="utf-8")
    npm("ci", "--no-audit", "--no-fund")
    npm("run", "types")
    npm("test")
    npm("run", "build", "--", "--outDir", str(folder), "--emptyOutDir")
    record(folder)


def npm(*arguments: str) -> None:
    """Run it in the dashboard's folder."""
    print(f"── npm {' '.join(arguments)}", flush=True)
    subprocess.run(["npm", *arguments], cwd=SOURCE, check=True)


def node() -> tuple[int, ...] | None:
    """The version of Node that is here, if there is one, and npm with it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return None
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in told.strip().removeprefix("v").split("."))


def main(arguments: list[str]) -> int:
    """The command."""
    if arguments == ["--types"]:
        TYPES.write_text(written(), encoding="utf-8")
        return 0
    if arguments:
        print("usage: ./dev dashboard [--types]", file=sys.stderr)
        return 2
    found = node()
    if found is None or found < OLDEST_NODE:
        have = "there is none" if found is None else f"this is {'.'.join(map(str, found))}"
        print(f"dev: building the dashboard needs Node 20.19 or newer with npm, and {have}", file=sys.stderr)
        return 1
    try:
        build()
    except subprocess.CalledProcessError as error:
        print(f"dev: the dashboard was not built: {' '.join(error.cmd)} failed, see above", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
