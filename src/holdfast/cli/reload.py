"""Reload for development: report when a Python file of the project changes."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from holdfast.cli.source_files import python_files

POLL_INTERVAL_S = 0.5

Snapshot = Mapping[Path, tuple[int, int]]
"""Modification time and size of each file."""


async def watch(folder: Path, on_change: Callable[[list[str]], None]) -> None:
    """Call `on_change` with the names of changed Python files below a folder.

    Runs until it is cancelled.
    """
    before = await asyncio.to_thread(take_snapshot, folder)
    while True:
        await asyncio.sleep(POLL_INTERVAL_S)
        after = await asyncio.to_thread(take_snapshot, folder)
        if changed := changed_files(before, after):
            on_change([str(path.relative_to(folder)) for path in changed])
        before = after


def take_snapshot(folder: Path) -> Snapshot:
    """Return the state of the Python files below a folder."""
    states: dict[Path, tuple[int, int]] = {}
    for path in python_files(folder):
        try:
            state = os.stat(path)  # noqa: PTH116 - half the time of Path.stat
        except OSError:  # deleted meanwhile
            continue
        states[path] = (state.st_mtime_ns, state.st_size)
    return states


def changed_files(before: Snapshot, after: Snapshot) -> list[Path]:
    """Return the files that were added, changed or deleted, sorted."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
