"""Check that every effect happens exactly once while workers are killed, in full size.

    python bench/effects.py                                  # on private servers and a new SQLite file
    python bench/effects.py --url postgresql://… --jobs 10000 --kills 100

Each job writes one row into a table without constraints, in its own transaction in the engine's database, while worker
processes and, every third time, whole nodes are killed with SIGKILL. The database must be new; it is migrated. Exit
code 1 if a row is missing or duplicated.
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
    """Run and print the results; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", action="append", default=[], help="new database; may be repeated")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    plan = effects.Plan(options.jobs, options.kills, nodes=2, processes=2, seed=options.seed)
    correct = True
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=_disk())))
        for url in options.url or _own_databases(stack, folder):
            correct &= _on(url, folder, plan)
    return 0 if correct else 1


def _on(url: str, folder: Path, plan: effects.Plan) -> bool:
    run(migrate(url))
    start_time = time.monotonic()
    found = run(effects.run(url, folder, plan))
    correct = found.succeeded == found.rows == plan.jobs and not found.duplicates and not found.missing_rows
    print(
        f"{dialect_of(url)}: {plan.jobs:,} jobs, seed {plan.seed}, {time.monotonic() - start_time:.0f} s: "
        f"{found.succeeded:,} succeeded, {found.rows:,} rows, {found.duplicates} duplicates, "
        f"{found.missing_rows} missing; {found.kills} kills, {found.interrupted:,} claims interrupted: "
        f"{'correct' if correct else 'WRONG'}",
        flush=True,
    )
    return correct


def _own_databases(stack: ExitStack, folder: Path) -> Sequence[str]:
    servers = stack.enter_context(running(["postgres", "mysql"]))
    return [*(each.url for each in servers.values() if isinstance(each, Server)), f"sqlite:///{folder}/effects.db"]


def _disk() -> str | None:
    return "/var/tmp" if Path("/var/tmp").is_dir() else None


if __name__ == "__main__":
    sys.exit(main())
