"""Processes that submit jobs of one tenant as fast as they can, and record what was accepted.

Run as a module with a database URL, a number and a duration by the clock of the database.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.errors import RateLimited
from holdfast.model.job import JobSpec
from tests.support.eventually import TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from holdfast.engine.engine import Engine

ROOT = Path(__file__).resolve().parents[2]
TENANT = "acme"


class AcceptedJob(NamedTuple):
    """Accepted submission."""

    id: str
    at: int
    cost: int


def over(accepted: Iterable[AcceptedJob], window: int, limit: int) -> list[tuple[int, int]]:
    """Return end and total of every window, both ends included, that exceeds the limit."""
    found: list[tuple[int, int]] = []
    ordered = sorted(accepted, key=lambda each: each.at)
    first = spent = 0
    for index, each in enumerate(ordered):
        spent += each.cost
        while ordered[first].at < each.at - window:
            spent -= ordered[first].cost
            first += 1
        if spent > limit and (index + 1 == len(ordered) or ordered[index + 1].at > each.at):
            found.append((each.at, spent))
    return found


class Submitter:
    """Submitting process."""

    def __init__(self, process: subprocess.Popen[bytes], file: Path) -> None:
        self.process = process
        self._file = file

    def output(self) -> list[list[object]]:
        """Return the complete lines of its output."""
        lines = self._file.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def accepted(self) -> list[AcceptedJob]:
        """Return the accepted submissions."""
        return [
            AcceptedJob(str(line[1]), int(str(line[2])), int(str(line[3]))) for line in self.output() if line[0] == "ok"
        ]

    def refused(self) -> int:
        """Return the number of rejections."""
        return sum(line[0] == "no" for line in self.output())

    async def was_refused(self) -> bool:
        """Tell if a submission was rejected."""
        return self.refused() > 0

    async def has_ended(self) -> bool:
        """Tell if the process has exited."""
        return self.process.poll() is not None

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(TIMEOUT_S)


@contextmanager
def submitters(database_url: str, folder: Path, count: int, span: int) -> Iterator[Sequence[Submitter]]:
    """Run this many submitters within a block."""
    started: list[Submitter] = []
    try:
        for number in range(count):
            file = folder / f"submitter-{number}"
            with file.open("wb") as out:
                command = [sys.executable, "-m", "tests.support.submitters", database_url, str(number), str(span)]
                started.append(Submitter(subprocess.Popen(command, cwd=ROOT, stdout=out), file))
        yield started
    finally:
        for each in started:
            with suppress(ProcessLookupError):
                each.process.kill()
            each.process.wait(30)


async def _submit(engine: Engine, number: int, until: int) -> None:
    rng = random.Random(number)
    turn = 0
    while True:
        turn += 1
        costs = [rng.choice([1, 1, 1, 2, 5])] if rng.random() < 0.8 else [1] * rng.randint(2, 6)
        key = f"{number}-{rng.randint(1, 20)}" if rng.random() < 0.2 else None
        specs = [JobSpec(type="send", payload=rng.randint(1, 9), tenant=TENANT, cost=cost) for cost in costs]
        try:
            if len(specs) > 1:
                receipts = await engine.jobs.submit_many(specs)
            else:
                (spec,) = specs
                given = {"idempotency_key": key, "payload": None, "cost": 1} if key else {}
                receipts = [
                    await engine.jobs.submit(JobSpec(**{f: getattr(spec, f) for f in spec.__struct_fields__} | given))
                ]
                costs = [1] if key else costs
        except RateLimited:
            print(json.dumps(["no"]), flush=True)
            at = await engine.store.single(lambda tx: tx.now())
        else:
            for receipt, cost in zip(receipts, costs, strict=True):
                print(json.dumps(["ok", f"{receipt.id}/{turn}", receipt.created_at, cost]), flush=True)
            at = receipts[0].created_at
        if at > until:
            return


async def _main(url: str, number: int, span: int) -> None:
    redis = os.environ.get("HOLDFAST_REDIS_URL")
    engine = await open_engine(Settings(database_url=url, pool_size=4, redis_url=redis))
    try:
        until = await engine.store.single(lambda tx: tx.now()) + span
        async with asyncio.TaskGroup() as group:
            for task in range(6):
                group.create_task(_submit(engine, number * 100 + task, until))
    finally:
        early = engine.coordination.status().lookups.get(("limits", "hit"), 0)
        print(json.dumps(["early", early]), flush=True)
        await engine.aclose()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
