"""Private database servers for tests, benchmarks and trials by hand.

`running({"postgres", "mysql"})` brings servers up for the length of a block; each is on a free loopback port, with its
data in a temporary folder, and gone afterwards. A server named in the environment (`HOLDFAST_TEST_POSTGRES_URL`, …) is
used as it is instead, and is never stopped. By hand: `python -m tests.support.servers` prints the URLs as JSON.
`kept` does the same for who wants to stop servers and start them again meanwhile.

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


class Keeper:
    """Servers of our own, which can be stopped as a crash would, and started again where they were."""

    def __init__(self, process: subprocess.Popen[str], found: Found) -> None:
        self.found = found
        self._process = process

    def stop(self, name: str) -> None:
        """End a server at once; returns when it is gone."""
        self._tell("stop", name, "stopped")

    def start(self, name: str) -> None:
        """Start a server that was stopped; returns when it answers."""
        self._tell("start", name, "started")

    def _tell(self, order: str, name: str, done: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{order} {name}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().rstrip()
        if answer != f"{done} {name}":
            raise RuntimeError(f"the server keeper was told to {order} {name} and said: {answer or 'nothing'}")


@contextmanager
def running(names: Collection[str]) -> Iterator[Found]:
    """Give the named servers for the length of the block, each as `Server` or `Missing`."""
    if not names:
        yield {}
        return
    with kept(names) as keeper:
        yield keeper.found


@contextmanager
def kept(names: Collection[str], environment: Mapping[str, str] | None = None) -> Iterator[Keeper]:
    """Keep the named servers for the length of the block, to be stopped and started at will."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", __name__, *sorted(names)],
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": "", **(environment or {})},
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
        yield Keeper(keeper, decode(line))
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()
