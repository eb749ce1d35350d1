"""The committed OpenAPI description: `.venv/bin/python -m tests.unit.openapi.golden` writes it.

A change of the contract is then part of the diff. A change that breaks clients is refused, unless `--breaking` says
that it is meant; the changelog must then name it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from holdfast.api.openapi.document import describe
from holdfast.api.routes import ALL
from tests.unit.openapi.breaking import breaking_changes

PATH = Path(__file__).resolve().parents[3] / "docs" / "reference" / "openapi.json"


def committed() -> dict[str, Any]:
    """Return the committed description; empty if there is none."""
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def current() -> dict[str, Any]:
    """Return the description of this source, with a fixed version instead of that of the release."""
    return json.loads(json.dumps(describe(ALL, "0.0.0")))


def main(arguments: list[str]) -> int:
    """Write the file; return 1 and name the changes if they break clients and that was not asked for."""
    old, new = committed(), current()
    broken = breaking_changes(old, new) if old else []
    sys.stdout.write("".join(f"{line}\n" for line in broken))
    if broken and "--breaking" not in arguments:
        advice = "keep the contract, or repeat with --breaking and name the change in CHANGELOG.md"
        sys.stdout.write(f"{len(broken)} changes break clients: {advice}\n")
        return 1
    PATH.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n")
    sys.stdout.write(f"wrote {PATH.name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
