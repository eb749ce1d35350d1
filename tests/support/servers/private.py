"""Private server: prepare, start and stop it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.support.servers import Server
from tests.support.servers.process import ServerFailedError, free_port, last_line, make_folder, start, stop

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.support.servers.recipes import Program, Recipe

TIMEOUT_S = 60.0  # seconds until a server that does not respond has failed


class PrivateServer:
    """Private server that can be stopped and started again with the same port and data."""

    def __init__(self, recipe: Recipe, program: Program, scratch: Path) -> None:
        self.recipe = recipe
        self.folder = make_folder(scratch / recipe.name)
        self.program = recipe.usable(program, self.folder)
        self.log = scratch / f"{recipe.name}.log"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        """Create its data; slow, and safe to run concurrently."""
        self.recipe.prepare(self.program, self.folder, self.port)

    def start(self) -> None:
        """Start the server without waiting. Call it from the main thread."""
        command = self.recipe.command(self.program, self.folder, self.port)
        self._process = start(command, executable=self.program.path, folder=self.folder, log=self.log)

    def wait(self) -> Server:
        """Wait until the server responds."""
        end = time.monotonic() + TIMEOUT_S
        while not self.recipe.ready(self.folder, self.port):
            if self._process is None or self._process.poll() is not None or time.monotonic() > end:
                message = f"{self.recipe.program} did not start: {last_line(self.log.read_text(errors='replace'))}"
                raise ServerFailedError(message)
            time.sleep(0.02)
        return Server(
            url=self.recipe.url(self.port),
            version=self.recipe.version(self.program),
            source=self.program.origin,
            private=True,
        )

    def stop(self) -> None:
        """Kill the server and wait until it has ended."""
        if self._process is not None:
            stop(self._process, self.recipe.stop_by)
            self._process = None
