"""Private database servers for tests, benchmarks and experiments.

`running({"postgres", "mysql"})` runs servers within a block, each on a free loopback port with its data in a temporary
folder. A server named in the environment (`HOLDFAST_TEST_POSTGRES_URL`, …) is used instead, and never stopped.
`python -m tests.support.servers` prints the URLs as JSON. `keep_servers` also allows stopping and starting them.

The servers belong to a keeper process, so that they are stopped and deleted even if their user is killed. A new kind of
server is a class in `recipes.py`.
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
    """Server that responds at `url`."""

    url: str
    version: str
    source: str
    private: bool  # started for this run and deleted afterwards

    def __str__(self) -> str:
        return f"{self.version} ({self.source}{', private' if self.private else ''})"


@dataclass(frozen=True)
class Missing:
    """Reason why a server is not available, and what to do about it."""

    reason: str

    def __str__(self) -> str:
        return f"MISSING, {self.reason}"


def encode(found: Found) -> str:
    """Encode servers as a line of JSON."""
    return json.dumps({name: asdict(each) for name, each in found.items()})


def decode(line: str) -> dict[str, Server | Missing]:
    """Decode a line of JSON from `encode`."""
    found: dict[str, dict[str, Any]] = json.loads(line)
    return {name: Missing(**each) if "reason" in each else Server(**each) for name, each in found.items()}


class Keeper:
    """Private servers that can be killed, and started again on the same port."""

    def __init__(self, process: subprocess.Popen[str], found: Found) -> None:
        self.found = found
        self._process = process

    def stop(self, name: str) -> None:
        """Kill a server and wait until it has ended."""
        self._send("stop", name, "stopped")

    def start(self, name: str) -> None:
        """Start a stopped server and wait until it responds."""
        self._send("start", name, "started")

    def _send(self, command: str, name: str, done: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command} {name}\n")
        self._process.stdin.flush()
        reply = self._process.stdout.readline().rstrip()
        if reply != f"{done} {name}":
            raise RuntimeError(f"the server keeper replied {reply!r} to {command} {name}")


@contextmanager
def running(names: Collection[str]) -> Iterator[Found]:
    """Run the named servers within a block; yield each as `Server` or `Missing`."""
    if not names:
        yield {}
        return
    with keep_servers(names) as keeper:
        yield keeper.found


@contextmanager
def keep_servers(names: Collection[str], environment: Mapping[str, str] | None = None) -> Iterator[Keeper]:
    """Run the named servers within a block; yield the keeper that stops and starts them."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", __name__, *sorted(names)],
        cwd=CHECKOUT,
        env=os.environ | {"PYTHONPATH": "", **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C must not reach the keeper, which exits when its stdin closes
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        line = keeper.stdout.readline()
        if not line:
            message = f"the server keeper exited early with code {keeper.wait()}"
            raise RuntimeError(message)
        yield Keeper(keeper, decode(line))
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()
