"""Jobs with one write each in the engine's own database, while the processes that run them are killed."""

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
"""Without any constraint: nothing but the engine keeps a row from being written twice."""

INSERT = {
    "postgres": "INSERT INTO ledger_tx (job, step) VALUES ($1, $2)",
    "mysql": "INSERT INTO ledger_tx (job, step) VALUES (%s, %s)",
    "sqlite": "INSERT INTO ledger_tx (job, step) VALUES (?, ?)",
}
_RETRY = RetryRule(base=Duration(20_000), cap=Duration(100_000), jitter=0.5)
_BATCH = 1_000
_REST = 0.05
"""Seconds from a job's write to its end, so that whoever is killed has some in between."""


class Plan(NamedTuple):
    """How many jobs, and what is done to those who run them."""

    jobs: int
    kills: int
    """SIGKILLs of single worker processes and, every third, of a whole node; while the first half of the work is done,
    so that there is enough left for the last of them."""
    nodes: int = 2
    processes: int = 1
    slots: int = 10
    lease: float = 2.0
    seed: int = 1


class Found(NamedTuple):
    """What there was to see afterwards."""

    succeeded: int
    rows: int
    written_twice: int
    not_written: int
    kills: int
    interrupted: int
    """Claims that did not come to their end."""


async def run(url: str, folder: Path, plan: Plan) -> Found:
    """Have all jobs done under kills, and count."""
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
                {"key": f"e{n}", "sql": sql, "args": [f"e{n}", "write"], "sleep": _REST},
                max_attempts=1_000,
                retry=_RETRY,
            )
            for n in range(low, min(jobs, low + _BATCH))
        ]
        ids += [receipt.id for receipt in await engine.jobs.submit_many(specs)]
    return ids


async def _work_under_kills(engine: Engine, console: Console, url: str, folder: Path, plan: Plan) -> int:
    """Until nothing is left to do; how many processes were killed on the way."""
    rng = random.Random(plan.seed)
    every = plan.jobs / 2 / (plan.kills + 1)
    kills = 0
    with ExitStack() as stack:

        def start() -> nodes.Node:
            options = {"queues": f"default:{plan.slots}", "processes": plan.processes, "lease": plan.lease}
            return stack.enter_context(nodes.node(url, folder, **options))

        fleet = [start() for _ in range(plan.nodes)]
        while True:
            written = await _asked(console)
            if written >= plan.jobs and not await _unfinished(engine):
                return kills
            if kills < plan.kills and written >= (kills + 1) * every:
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


async def _asked(console: Console) -> int:
    return int(await console.value("SELECT count(*) FROM ledger_tx"))


async def _unfinished(engine: Engine) -> int:
    with suppress(Unavailable):
        return sum(count.jobs for count in await engine.jobs.counts())
    return 1


async def _count(engine: Engine, console: Console, ids: list[JobId], kills: int) -> Found:
    succeeded = interrupted = 0
    for low in range(0, len(ids), _BATCH):
        lot = ids[low : low + _BATCH]
        for job in await engine.store.single(lambda tx, lot=lot: tx.get(lot)):  # type: ignore[misc]
            succeeded += job.status is Status.SUCCEEDED
            interrupted += job.fence - 1
    rows = await console.run("SELECT job, count(*) FROM ledger_tx GROUP BY job")
    return Found(
        succeeded=succeeded,
        rows=await _asked(console),
        written_twice=sum(times > 1 for _, times in rows),
        not_written=len(ids) - len(rows),
        kills=kills,
        interrupted=interrupted,
    )
