"""Jobs that each write one row in the engine's database, while their processes are killed."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import ExitStack, suppress
from signal import SIGKILL
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.compose import open_engine
from holdfast.config import Settings
from holdfast.errors import Unavailable
from holdfast.model.job import JobSpec, RetryRule
from holdfast.model.state import Status
from holdfast.model.time import Duration
from tests.support import nodes
from tests.support.clock import Console, dialect_of

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.engine.engine import Engine
    from holdfast.model.ids import JobId

TABLE = "CREATE TABLE ledger_tx (job VARCHAR(40) NOT NULL, step VARCHAR(40) NOT NULL)"
"""Has no constraint, so that only the engine prevents duplicate rows."""

INSERT = {
    "postgres": "INSERT INTO ledger_tx (job, step) VALUES ($1, $2)",
    "mysql": "INSERT INTO ledger_tx (job, step) VALUES (%s, %s)",
    "sqlite": "INSERT INTO ledger_tx (job, step) VALUES (?, ?)",
}
_RETRY = RetryRule(base=Duration(20_000), cap=Duration(100_000), jitter=0.5)
_BATCH = 1_000
_PAUSE_S = 0.05
"""Time between the write of a job and its end, so that kills hit jobs in between."""


class Plan(NamedTuple):
    """Number of jobs, and kills of the processes that run them."""

    jobs: int
    kills: int
    """SIGKILLs of worker processes, every third of a whole node. All happen during the first half of the jobs, so that
    enough remain after the last."""
    nodes: int = 2
    processes: int = 1
    slots: int = 10
    lease: float = 2.0
    seed: int = 1


class EffectCounts(NamedTuple):
    """Counts after the run."""

    succeeded: int
    rows: int
    duplicates: int
    missing_rows: int
    kills: int
    interrupted: int
    """Claims that did not finish."""


async def run(url: str, folder: Path, plan: Plan) -> EffectCounts:
    """Run all jobs under kills and return the counts."""
    engine = await open_engine(msgspec.structs.replace(Settings(), database_url=url))
    try:
        async with Console(url) as console:
            await console.run(TABLE)
            ids = await _submit(engine, url, plan.jobs)
            kills = await _work_under_kills(engine, console, url, folder, plan)
            return await _count(engine, console, ids, kills)
    finally:
        await engine.aclose()


async def _submit(engine: Engine, url: str, jobs: int) -> list[JobId]:
    sql = INSERT[dialect_of(url)]
    ids: list[JobId] = []
    for low in range(0, jobs, _BATCH):
        specs = [
            JobSpec(
                "effect",
                {"key": f"e{n}", "sql": sql, "args": [f"e{n}", "write"], "sleep": _PAUSE_S},
                max_attempts=1_000,
                retry=_RETRY,
            )
            for n in range(low, min(jobs, low + _BATCH))
        ]
        ids += [receipt.id for receipt in await engine.jobs.submit_many(specs)]
    return ids


async def _work_under_kills(engine: Engine, console: Console, url: str, folder: Path, plan: Plan) -> int:
    """Run until all jobs have finished; return the number of kills."""
    rng = random.Random(plan.seed)
    interval = plan.jobs / 2 / (plan.kills + 1)
    kills = 0
    with ExitStack() as stack:

        def start() -> nodes.Node:
            options = {"queues": f"default:{plan.slots}", "processes": plan.processes, "lease": plan.lease}
            return stack.enter_context(nodes.node(url, folder, **options))

        fleet = [start() for _ in range(plan.nodes)]
        while True:
            written = await _count_rows(console)
            if written >= plan.jobs and not await _unfinished(engine):
                return kills
            if kills < plan.kills and written >= (kills + 1) * interval:
                at = rng.randrange(len(fleet))
                if kills % 3 == 2:
                    fleet[at].signal_all(SIGKILL)
                    fleet[at].wait()
                    fleet[at] = start()
                    kills += 1
                elif children := fleet[at].children():
                    with suppress(ProcessLookupError):
                        os.kill(rng.choice(children), SIGKILL)
                        kills += 1
            assert all(node.alive() for node in fleet), [node.log for node in fleet if not node.alive()]
            await asyncio.sleep(0.02)


async def _count_rows(console: Console) -> int:
    return int(await console.value("SELECT count(*) FROM ledger_tx"))


async def _unfinished(engine: Engine) -> int:
    with suppress(Unavailable):
        return sum(count.jobs for count in await engine.jobs.counts())
    return 1


async def _count(engine: Engine, console: Console, ids: list[JobId], kills: int) -> EffectCounts:
    succeeded = interrupted = 0
    for low in range(0, len(ids), _BATCH):
        batch = ids[low : low + _BATCH]
        for job in await engine.store.single(lambda tx, batch=batch: tx.get(batch)):  # type: ignore[misc]
            succeeded += job.status is Status.SUCCEEDED
            interrupted += job.fence - 1
    rows = await console.run("SELECT job, count(*) FROM ledger_tx GROUP BY job")
    return EffectCounts(
        succeeded=succeeded,
        rows=await _count_rows(console),
        duplicates=sum(times > 1 for _, times in rows),
        missing_rows=len(ids) - len(rows),
        kills=kills,
        interrupted=interrupted,
    )
