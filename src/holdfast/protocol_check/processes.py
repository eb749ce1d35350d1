"""Processes of a check: the private node, and the worker with its descendants."""

import asyncio
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.compose import migrate
from holdfast.errors import Unavailable
from holdfast.sdk.async_client import AsyncClient

START_TIMEOUT_S = 60.0
_POLL_INTERVAL_S = 0.05
_LISTENING = re.compile(r"listening on (http://127\.0\.0\.1:(\d+))")
_OURS = ("HOLDFAST_", "DATABASE_URL", "DB_DSN", "PORT")


def plain_environment() -> dict[str, str]:
    """Return the environment without settings of holdfast."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}


class PrivateNode:
    """`holdfast serve` on a temporary SQLite file; its port stays the same after a restart."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database_url = f"sqlite:///{folder / 'jobs.db'}"
        self._admin_key = secrets.token_urlsafe(32)
        self._port = "0"
        self._process: asyncio.subprocess.Process | None = None
        self.url = ""
        self.client: AsyncClient | None = None
        """Client of an administrator."""

    async def start(self) -> AsyncClient:
        """Start the node; raises `Unavailable` if it does not listen."""
        if not self.url:
            await migrate(self._database_url)
        offset = len(self._log())
        self._process = await self._serve()
        end = time.monotonic() + START_TIMEOUT_S
        while not (found := _LISTENING.search(self._log()[offset:])):
            if self._process.returncode is not None or time.monotonic() > end:
                break
            await asyncio.sleep(_POLL_INTERVAL_S)
        if found is None:
            raise Unavailable(f"the private node did not start: {self._log()[offset:].strip()[-500:]}")
        self.url, self._port = found.groups()
        if self.client is None:
            self.client = AsyncClient(self.url, self._admin_key)
        return self.client

    async def start_if_down(self) -> None:
        """Start the node unless it runs."""
        if self._process is None or self._process.returncode is not None:
            await self.start()

    async def kill(self) -> None:
        """Kill the node, as a crash of its machine would."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def aclose(self) -> None:
        """Kill the node, and close the client."""
        await self.kill()
        if self.client is not None:
            await self.client.aclose()

    def _log(self) -> str:
        path = self._folder / "node.log"
        return path.read_text(errors="replace") if path.exists() else ""

    async def _serve(self) -> asyncio.subprocess.Process:
        environment = plain_environment() | {
            "HOLDFAST_DATABASE_URL": self._database_url,
            "HOLDFAST_ADMIN_KEY": self._admin_key,
        }
        with (self._folder / "node.log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", "holdfast", "serve", "--host", "127.0.0.1", "--port", self._port,
                cwd=self._folder, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip


class WorkerUnderTest:
    """Process that the user's command started, with its descendants."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, command: Sequence[str], environment: Mapping[str, str], log: Path) -> "WorkerUnderTest":
        """Start the command in its own session; raises `OSError` if it cannot be executed."""
        with log.open("ab") as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                env={**plain_environment(), **environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return cls(process, log)

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs."""
        return self._process.returncode

    @property
    def output(self) -> str:
        """Everything that the command printed."""
        return self._log.read_text(errors="replace")

    def terminate(self) -> None:
        """Send SIGTERM to the process itself, as a process manager does."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to the process and all its descendants."""
        for pid in self._tree():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    async def kill(self) -> None:
        """Kill the process and all its descendants at once."""
        if self._process.returncode is None:
            self.signal_all(signal.SIGSTOP)  # so that no process starts another one meanwhile
            self.signal_all(signal.SIGKILL)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    def _tree(self) -> list[int]:
        """Return the process and its descendants; without /proc, only the process group is known."""
        if not Path("/proc/self/task").exists():
            return [-self._process.pid]
        found, pending = [], [self._process.pid]
        while pending:
            found.append(pid := pending.pop())
            with suppress(OSError):
                for task in Path(f"/proc/{pid}/task").iterdir():
                    pending += map(int, (task / "children").read_text().split())
        return found
