"""A node of the HTTP service as a real process: started, killed by its id, started again at the same address."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.nodes import ROOT

_SAID = re.compile(r"listening on (https?://\S+:(\d+));")


class Service:
    """A `holdfast serve`. Its address stays the same from its first start on."""

    def __init__(self, database_url: str, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._database_url = database_url
        self._environment = environment or {}
        self._folder = folder
        self._process: subprocess.Popen[bytes]
        self._starts = 0
        self._port = "0"
        self.url = ""

    def start(self) -> None:
        """Start it, and wait until it answers."""
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
        while not (said := _SAID.search(log.read_text())):
            assert self._process.poll() is None, log.read_text()
            time.sleep(0.02)
        self.url, self._port = said[1], said[2]

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self._process.kill()
        self._process.wait(30)

    def stop(self) -> int:
        """Tell it to end, and wait until it has; its exit code."""
        self._process.terminate()
        return self._process.wait(30)
