"""Private database servers for tests, benchmarks and trials by hand.

`running({"postgres", "mysql"})` brings servers up for the length of a block; each is on a free loopback port, with its
data in a temporary folder, and gone afterwards. A server named in the environment (`HOLDFAST_TEST_POSTGRES_URL`, …) is
used as it is instead, and is never stopped. By hand: `python -m tests.support.servers` prints the URLs as JSON.

The servers belong to a keeper process, so that they end and their data goes even when the one who asked is killed.
A new kind of server is one class in `recipes.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    Found = Mapping[str, "Server | Missing"]

CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Server:
    """A server that answers at `url`."""

    url: str
    version: str
    source: str
    private: bool  # ours alone: it and all in it goes when we are done

    def __str__(self) -> str:
        return f"{self.version} ({self.source}{', private' if self.private else ''})"


@dataclass(frozen=True)
class Missing:
    """Why a server cannot be had, and what to do about it."""

    reason: str

    def __str__(self) -> str:
        return f"MISSING, {self.reason}"


def encode(found: Found) -> str:
    """One line of JSON, which `decode` reads back."""
    return json.dumps({name: asdict(each) for name, each in found.items()})


def decode(line: str) -> dict[str, Server | Missing]:
    """Read the line that `encode` wrote."""
    found: dict[str, dict[str, Any]] = json.loads(line)
    return {name: Missing(**each) if "reason" in each else Server(**each) for name, each in found.items()}


@contextmanager
def running(names: Collection[str]) -> Iterator[Found]:
    """Give the named servers for the length of the block, each as `Server` or `Missing`."""
    if not names:
        yield {}
        return
    keeper = subprocess.Popen(
        [sys.executable, "-m", __name__, *sorted(names)],
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a Ctrl-C is ours to handle; the keeper ends when its stdin closes
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        line = keeper.stdout.readline()
        if not line:
            message = f"the server keeper ended early, with code {keeper.wait()}"
            raise RuntimeError(message)
        yield decode(line)
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()
