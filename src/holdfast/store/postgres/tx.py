"""Transaction on PostgreSQL. Sets of rows are passed as arrays."""

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

from asyncpg import Connection

from holdfast.model.access import Quotas
from holdfast.model.change_log import ChangeEntry
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import HeldJob, Job
from holdfast.model.lane import Lane, LaneReady, Share
from holdfast.model.limit import LimitKind, LimitName
from holdfast.model.state import Status
from holdfast.model.step import Step
from holdfast.model.time import Instant
from holdfast.store.port.change_log import Rollup
from holdfast.store.port.store import LockedUsage
from holdfast.store.postgres.inserts import Inserts
from holdfast.store.postgres.transitions import TransitionsTx, joined
from holdfast.store.sql.change_log import entry_of
from holdfast.store.sql.codec import Row, job_of
from holdfast.store.sql.steps import step_parameters
from holdfast.store.statements import Statements


class PostgresTx(TransitionsTx, Inserts):
    """Transaction on a connection, or single statements in autocommit mode."""

    def __init__(self, connection: Connection, statements: Statements, *, autocommit: bool) -> None:
        super().__init__()
        self._connection = connection
        self.autocommit = autocommit
        self._statements = statements

    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""
        statement = self._statements[name]
        found: Sequence[Row] = await self._connection.fetch(
            statement.text, *[parameters[p] for p in statement.parameters]
        )
        return found

    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""
        statement = self._statements[name]
        tag = await self._connection.execute(statement.text, *[parameters[p] for p in statement.parameters])
        return int(tag.rsplit(" ", 1)[1])

    async def collect_if_few(self, status: Status | None, tenant: str | None) -> set[JobId] | None:
        """Return a superset of the unfinished jobs of a status or tenant; None if too many."""
        await self.rows("disable_seqscan")
        return await super().collect_if_few(status, tenant)

    @asynccontextmanager
    async def in_transaction(self) -> AsyncIterator[None]:
        """Group statements into one transaction, even in autocommit mode."""
        if not self.autocommit:
            yield
            return
        async with self._connection.transaction():
            self.autocommit = False
            try:
                yield
            finally:
                self.autocommit = True

    async def claim(
        self,
        worker: WorkerId,
        shares: Sequence[Share],
        limit: int,
        types: Sequence[str] | None,
        *,
        without: Sequence[str] = (),
        counting: Collection[LimitName] = (),
    ) -> list[Job]:
        rows = await self.rows(
            "claim",
            worker=worker,
            queues=[share.lane.queue for share in shares],
            tenants=[share.lane.tenant for share in shares],
            priorities=joined([share.lane.priority for share in shares]),
            max_jobs=joined([share.max_jobs for share in shares]),
            floors=joined([share.floor for share in shares]),
            types=types,
            without=list(without) or None,
            counted_queues=[name.name for name in counting if name.kind is LimitKind.QUEUE],
            counted_tenants=[name.name for name in counting if name.kind is LimitKind.TENANT],
            limit=limit,
        )
        self.changed = bool(rows)
        return [job_of(row) for row in rows]

    async def get(self, ids: Collection[JobId]) -> list[Job]:
        return [job_of(row) for row in await self.rows("get", ids=list(ids))]

    async def remove_rows(self, table: str, jobs: Sequence[Job]) -> set[JobId]:
        """Delete the rows of a table that are unchanged since they were read; return their ids."""
        rows = await self.rows(
            f"remove_{table}",
            ids=[job.id for job in jobs],
            fences=[job.fence for job in jobs],
            was=[job.status.code for job in jobs],
        )
        return {row[0] for row in rows}

    async def remove_steps(self, ids: Collection[JobId]) -> None:
        """Delete the steps of these jobs."""
        await self.rows("remove_steps", ids=list(ids))

    async def ready_queues(self, queues: Sequence[str]) -> set[str]:
        return {row[0] for row in await self.rows("ready_queues", queues=list(queues))}

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        rows = await self.rows(
            "still_held",
            ids=[job.id for job in held],
            fences=[job.fence for job in held],
            workers=[job.worker for job in held],
        )
        return {job.id for job in held} - {row[0] for row in rows}

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        return bool(await self.rows("record_step", key=step.key, **step_parameters(held, step)))

    async def promote(self, limit: int) -> int:
        promoted = 0
        keys: set[tuple[str, str]] = set()
        async with self.in_transaction():
            for queue, tenant, priority, seq, jobs, key in await self.rows("promote", limit=limit):
                promoted += jobs
                if key is None:
                    self.ready_lanes.append(LaneReady(Lane(queue, tenant, priority), seq))
                else:
                    keys.add((tenant, key))
            await self.grant_key_slots(keys)
        return promoted

    async def each(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement for each row, in order and in one round trip."""
        statement = self._statements[name]
        await self._connection.executemany(
            statement.text, [[row[parameter] for parameter in statement.parameters] for row in rows]
        )

    async def lock_usage(self, tenant: str) -> LockedUsage:
        state, name, *quotas, at = (await self.rows("lock_usage", tenant=tenant))[0]
        return LockedUsage(state, None if name is None else Quotas(*quotas), Instant(at))

    async def queue_backlogs(self, tenant: str, queues: Collection[str], max_count: int) -> dict[str, int]:
        rows = await self.rows("queue_backlogs", tenant=tenant, queues=list(queues), max_count=max_count)
        return {row[0]: row[1] for row in rows}

    async def append_change(self, body: bytes) -> None:
        """Append an entry to the change log."""
        await self.count("append_change", body=body.decode())

    async def changes_at(self, numbers: Collection[int]) -> list[ChangeEntry]:
        return [entry_of(row) for row in await self.rows("changes_at", numbers=list(numbers))]

    async def write_rollups(self, span: int, rollups: Sequence[Rollup]) -> None:
        """Insert or replace these rollups; the span is in seconds."""
        numbers = (
            "ats",
            "submitted",
            "started",
            "succeeded",
            "failed",
            "dead",
            "cancelled",
            "costs",
            "waited",
            "reaped",
        )
        tenants, ats, queues, types, *counts, waits, runs, costs, waited, reaped = zip(*rollups, strict=True)
        texts: dict[str, Sequence[str]] = {"tenants": tenants, "queues": queues, "types": types}
        texts |= {"waits": [wait.decode() for wait in waits], "runs": [run.decode() for run in runs]}
        columns = dict(zip(numbers, map(joined, (ats, *counts, costs, waited, reaped)), strict=True))
        await self.count("save_rollups", span=span, **texts, **columns)
