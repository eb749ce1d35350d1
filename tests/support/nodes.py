"""Worker nodes as real processes: started, signalled by their id, looked into, and always ended."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, Signals

ROOT = Path(__file__).resolve().parents[2]


class Node:
    """A `holdfast work` on the kitchen application, and all the processes below it."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """The supervisor's process id."""
        return self._process.pid

    @property
    def log(self) -> str:
        """What it said."""
        return self._log.read_text(errors="replace")

    def alive(self) -> bool:
        """Whether the supervisor runs."""
        return self._process.poll() is None

    def children(self) -> list[int]:
        """Its worker processes, without the one that they are forked of."""
        return [pid for pid in children_of(self.pid) if _name(pid) == "hf-worker"]

    def nurseries(self) -> list[int]:
        """What its processes are forked of: workers, and below each of those the jobs that run alone."""
        return [pid for pid in self.everyone() if _name(pid) == "hf-forkserver"]

    def everyone(self) -> list[int]:
        """The supervisor and all below it."""
        found, left = [], [self.pid]
        while left:
            found.append(pid := left.pop())
            left += children_of(pid)
        return found

    def signal(self, number: Signals) -> None:
        """Signal the supervisor alone."""
        os.kill(self.pid, number)

    def signal_all(self, number: Signals) -> None:
        """Signal the supervisor and everything below it, as if the machine did."""
        for pid in self.everyone():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def wait(self, timeout: float = 60) -> int:
        """Until the supervisor ended; its exit code."""
        return self._process.wait(timeout)

    def end(self) -> None:
        """Leave nothing running."""
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
    """Start a node; it is at work when its worker is in the register."""
    log = folder / f"node-{len(list(folder.glob('node-*')))}.log"
    variables = {
        **os.environ,
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_LEASE_SECONDS": str(lease),
        "HOLDFAST_DRAIN_SECONDS": str(drain),
        "KITCHEN_LEDGER": str(ledger) if ledger else "",
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
    """A node for the length of a block."""
    started = start(database_url, folder, **options)  # type: ignore[arg-type]
    try:
        yield started
    finally:
        started.end()


def children_of(pid: int, *, zombies: bool = False) -> list[int]:
    """The processes that a process started and that are still there, zombies counted only if asked for."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    return [child for child in found if zombies or state_of(child) != "Z"]


def state_of(pid: int) -> str:
    """A process's state in a letter: R, S, T …; Z if it has ended."""
    return _state(Path(f"/proc/{pid}/stat"))


def stands_still(pid: int) -> bool:
    """Whether all threads of a process are stopped, or it has ended: a signal takes its time to reach them."""
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
