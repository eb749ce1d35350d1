"""Whether every effect happens once while workers are killed throughout, in full size.

    python bench/effects.py                                  # on private servers and a new SQLite file
    python bench/effects.py --url postgresql://… --jobs 10000 --kills 100

Each job writes one row into a table without constraints, in a transaction of its own in the engine's database; worker
processes, and every third time whole nodes, are ended with SIGKILL all the while. The database must be a new one; its
schema is made. Exit code 1 if a row is missing or was written twice.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from holdfast.cli.event_loop import run  # noqa: E402
from holdfast.store.console import dialect_of  # noqa: E402
from tests.support import effects  # noqa: E402
from tests.support.databases import migrate  # noqa: E402
from tests.support.servers import Server, running  # noqa: E402


def main() -> int:
    """Run and tell; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", action="append", default=[], help="a new database; may be given again")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    plan = effects.Plan(asked.jobs, asked.kills, nodes=2, processes=2, seed=asked.seed)
    right = True
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_disk())))
        for url in asked.url or _own_databases(stack, folder):
            right &= _on(url, folder, plan)
    return 0 if right else 1


def _on(url: str, folder: Path, plan: effects.Plan) -> bool:
    run(migrate(url))
    began = time.monotonic()
    found = run(effects.run(url, folder, plan))
    right = found.succeeded == found.rows == plan.jobs and not found.duplicates and not found.missing_rows
    print(
        f"{dialect_of(url)}: {plan.jobs:,} jobs, seed {plan.seed}, {time.monotonic() - began:.0f} s: "
        f"{found.succeeded:,} succeeded, {found.rows:,} rows, {found.written_twice} written twice, "
        f"{found.not_written} not written; {found.kills} kills, {found.interrupted:,} claims interrupted: "
        f"{'right' if right else 'WRONG'}",
        flush=True,
    )
    return right


def _own_databases(stack: ExitStack, folder: Path) -> Sequence[str]:
    servers = stack.enter_context(running(["postgres", "mysql"]))
    return [*(each.url for each in servers.values() if isinstance(each, Server)), f"sqlite:///{folder}/effects.db"]


def _disk() -> str | None:
    return "/var/tmp" if Path("/var/tmp").is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
