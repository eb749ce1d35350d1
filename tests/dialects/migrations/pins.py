"""Checksums of the schema steps, so that a step that was released cannot change unnoticed."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.store import migrate

FILE = Path(__file__).parent / "golden" / "checksums.json"

DIALECTS = ("postgres", "mysql", "sqlite")

Pins = dict[str, dict[str, str]]


def current() -> Pins:
    """Return the checksums of the steps in the source tree, by dialect and name."""
    return {
        dialect: {f"{step.version:04d}_{step.name}": step.checksum for step in migrate.migrations(dialect)}
        for dialect in DIALECTS
    }


def changed(released: list[str], pinned: Pins, now: Pins) -> list[str]:
    """Return the released steps whose checksum is no longer the pinned one, as `dialect/name`."""
    return [
        f"{dialect}/{name}"
        for dialect, steps in pinned.items()
        for name, checksum in steps.items()
        if name in released and now.get(dialect, {}).get(name) != checksum
    ]


def read() -> tuple[list[str], Pins]:
    """Return the names of the released steps, and the pinned checksums of all steps."""
    stored = json.loads(FILE.read_text())
    return stored["released"], stored["checksums"]


def write() -> None:
    """Pin the steps as they are now; a released step cannot be pinned again."""
    released, pinned = read() if FILE.exists() else ([], {})
    now = current()
    if steps := changed(released, pinned, now):
        raise SystemExit(f"released schema steps were changed: {', '.join(steps)}; undo it and add a step instead")
    FILE.write_text(json.dumps({"released": released, "checksums": now}, indent=2) + "\n")
