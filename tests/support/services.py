"""Node of the HTTP service as a process that can be killed and started again at the same address."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.nodes import ROOT

_LISTENING = re.compile(r"listening on (https?://\S+:(\d+));")


class Service:
    """A `holdfast serve` process. Its address stays the same after the first start."""

    def __init__(self, database_url: str, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._database_url = database_url
        self._environment = environment or {}
        self._folder = folder
        self._process: subprocess.Popen[bytes]
        self._starts = 0
        self._port = "0"
        self.url = ""

    def start(self) -> None:
        """Start the node and wait until it listens."""
        self._starts += 1
        log = self._folder / f"service-{id(self)}-{self._starts}.log"
        variables = {
            **os.environ,
            "HOLDFAST_DATABASE_URL": self._database_url,
            "HOLDFAST_BACKOFF_BASE_MS": "1",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
            **self._environment,
        }
        command = [sys.executable, "-m", "holdfast", "serve", "--port", self._port]
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, cwd=self._folder, env=variables, stdout=output, stderr=output)
        while not (match := _LISTENING.search(log.read_text())):
            assert self._process.poll() is None, log.read_text()
            time.sleep(0.02)
        self.url, self._port = match[1], match[2]

    def kill(self) -> None:
        """Kill the node."""
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> int:
        """Stop the node gracefully; return its exit code."""
        self._process.terminate()
        return self._process.wait(30)
