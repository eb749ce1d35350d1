"""Worker nodes as processes that tests start, signal, inspect and stop."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, Signals

ROOT = Path(__file__).resolve().parents[2]


class Node:
    """A running `holdfast work` with all its processes."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """Process id of the supervisor."""
        return self._process.pid

    @property
    def log(self) -> str:
        """Log of the node."""
        return self._log.read_text(errors="replace")

    def alive(self) -> bool:
        """Tell if the supervisor is running."""
        return self._process.poll() is None

    def children(self) -> list[int]:
        """Return the worker processes, without the fork server."""
        return [pid for pid in children_of(self.pid) if _name(pid) == "hf-worker"]

    def fork_servers(self) -> list[int]:
        """Return the fork servers: of the workers, and of isolated jobs."""
        return [pid for pid in self.all_processes() if _name(pid) == "hf-forkserver"]

    def all_processes(self) -> list[int]:
        """Return the supervisor and all its descendants."""
        found, pending = [], [self.pid]
        while pending:
            found.append(pid := pending.pop())
            pending += children_of(pid)
        return found

    def signal(self, number: Signals) -> None:
        """Signal only the supervisor."""
        os.kill(self.pid, number)

    def signal_all(self, number: Signals) -> None:
        """Signal the supervisor and all its descendants."""
        for pid in self.all_processes():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait(self, timeout: float = 60) -> int:
        """Wait until the supervisor exits; return its exit code."""
        return self._process.wait(timeout)

    def end(self) -> None:
        """Kill all processes of the node."""
        for number in (SIGCONT, SIGKILL):
            with suppress(ProcessLookupError):
                self.signal_all(number)
        self._process.wait(30)


def start(
    database_url: str,
    folder: Path,
    *,
    ledger: Path | None = None,
    queues: str = "default:10",
    processes: int = 1,
    lease: float = 2.0,
    drain: float = 5.0,
    app: str = "tests.support.fault_app:app",
    environment: dict[str, str] | None = None,
    options: Sequence[str] = (),
) -> Node:
    """Start a node; it is ready when its workers are registered."""
    log = folder / f"node-{len(list(folder.glob('node-*')))}.log"
    variables = {
        **os.environ,
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_LEASE_SECONDS": str(lease),
        "HOLDFAST_DRAIN_SECONDS": str(drain),
        "FAULT_APP_LEDGER": str(ledger) if ledger else "",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        **(environment or {}),
    }
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "work",
        app,
        "--queues",
        queues,
        "--processes",
        str(processes),
        *options,
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdout=output, stderr=output, start_new_session=True
        )
    return Node(process, log)


@contextmanager
def node(database_url: str, folder: Path, **options: object) -> Iterator[Node]:
    """Run a node within a block."""
    started = start(database_url, folder, **options)  # type: ignore[arg-type]
    try:
        yield started
    finally:
        started.end()


def children_of(pid: int, *, zombies: bool = False) -> list[int]:
    """Return the child processes of a process, zombies only on request."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in found if zombies or state_of(child) != "Z"]


def state_of(pid: int) -> str:
    """Return the state of a process as a letter: R, S, T …; Z if it has ended."""
    return _state(Path(f"/proc/{pid}/stat"))


def is_stopped(pid: int) -> bool:
    """Tell if all threads of a process are stopped or it has ended; signals arrive with a delay."""
    try:
        return all(_state(task / "stat") in "TZ" for task in Path(f"/proc/{pid}/task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return True


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _state(stat: Path) -> str:
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"
