"""A transaction on PostgreSQL: sets travel as arrays."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from asyncpg import Connection, NotNullViolationError

from holdfast.model import feed
from holdfast.model.access import Quotas
from holdfast.model.feed import Entry
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Held, Job
from holdfast.model.lane import Lane, News, Share
from holdfast.model.limit import Limit, LimitKind, LimitName
from holdfast.model.state import Status
from holdfast.model.step import Step
from holdfast.model.time import Instant
from holdfast.model.transition import Transition
from holdfast.store.codec import Row, job_of
from holdfast.store.feed_port import Rollup
from holdfast.store.limits_port import KeyHolder
from holdfast.store.port import Locked
from holdfast.store.postgres.inserts import Inserts
from holdfast.store.sql_feed import entry_of
from holdfast.store.sql_limits import Ask, Key, limit_of, stored_code
from holdfast.store.sql_steps import recording
from holdfast.store.statements import Statements


class PostgresTx(Inserts):
    """See `holdfast.store.port.Tx`."""

    def __init__(self, connection: Connection, statements: Statements, *, autocommit: bool) -> None:
        super().__init__()
        self._connection = connection
        self._autocommit = autocommit
        self._statements = statements

    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement; its rows."""
        statement = self._statements[name]
        found: Sequence[Row] = await self._connection.fetch(
            statement.text, *[parameters[p] for p in statement.parameters]
        )
        return found

    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement; how many rows it changed."""
        statement = self._statements[name]
        tag = await self._connection.execute(statement.text, *[parameters[p] for p in statement.parameters])
        return int(tag.rsplit(" ", 1)[1])

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Make one transaction of several statements, also where each would be one by itself."""
        if not self._autocommit:
            yield
            return
        async with self._connection.transaction():
            self._autocommit = False
            try:
                yield
            finally:
                self._autocommit = True

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
        """See the port."""
        rows = await self.rows(
            "claim",
            worker=worker,
            queues=[share.lane.queue for share in shares],
            tenants=[share.lane.tenant for share in shares],
            priorities=[share.lane.priority for share in shares],
            quotas=[share.quota for share in shares],
            floors=[share.floor for share in shares],
            types=types,
            without=list(without) or None,
            counted_queues=[name.name for name in counting if name.kind is LimitKind.QUEUE],
            counted_tenants=[name.name for name in counting if name.kind is LimitKind.TENANT],
            limit=limit,
        )
        self.changed = bool(rows)
        return [job_of(row) for row in rows]

    async def finish(self, moves: Sequence[Transition]) -> set[JobId]:
        """Move jobs out of live, into history or the dead letters."""
        rows = await self._moved(
            "finish",
            moves,
            ids=[move.id for move in moves],
            fences=[move.fence for move in moves],
            was=[move.was.code for move in moves],
            workers=[move.worker for move in moves],
            becomes=[move.to.code for move in moves],
            results=[move.result for move in moves],
            logs=[move.attempt_log for move in moves],
            reasons=[move.reason for move in moves],
            fingerprints=[move.fingerprint for move in moves],
        )
        return {row[0] for row in rows}

    async def requeue(self, moves: Sequence[Transition]) -> Iterable[Row]:
        """Let jobs wait or be ready again, in place."""
        return await self._moved(
            "requeue",
            moves,
            ids=[move.id for move in moves],
            fences=[move.fence for move in moves],
            was=[move.was.code for move in moves],
            workers=[move.worker for move in moves],
            becomes=[stored_code(move) for move in moves],
            attempts=[move.attempts for move in moves],
            releases=[move.releases for move in moves],
            delays=[move.delay for move in moves],
            logs=[move.attempt_log for move in moves],
        )

    async def revive(self, moves: Sequence[Transition]) -> Iterable[Row]:
        """Move finished jobs back into live."""
        revived: list[Row] = []
        for name, dead in (("revive_dead", True), ("revive_history", False)):
            if here := [move for move in moves if (move.was is Status.DEAD) is dead]:
                revived += await self._moved(
                    name,
                    here,
                    ids=[move.id for move in here],
                    fences=[move.fence for move in here],
                    was=[move.was.code for move in here],
                    generations=[move.generation for move in here],
                )
        return revived

    async def get(self, ids: Collection[JobId]) -> list[Job]:
        """See the port."""
        return [job_of(row) for row in await self.rows("get", ids=list(ids))]

    async def remove_rows(self, place: str, jobs: Sequence[Job]) -> set[JobId]:
        """Delete those of a table that still are as they were read; which were."""
        rows = await self.rows(
            f"remove_{place}",
            ids=[job.id for job in jobs],
            fences=[job.fence for job in jobs],
            was=[job.status.code for job in jobs],
        )
        return {row[0] for row in rows}

    async def remove_steps(self, ids: Collection[JobId]) -> None:
        """Delete all that was recorded for these."""
        await self.rows("remove_steps", ids=list(ids))

    async def lost(self, held: Collection[Held]) -> set[JobId]:
        """See the port."""
        rows = await self.rows(
            "still_held",
            ids=[job.id for job in held],
            fences=[job.fence for job in held],
            workers=[job.worker for job in held],
        )
        return {job.id for job in held} - {row[0] for row in rows}

    async def record_step(self, held: Held, step: Step) -> bool:
        """See the port."""
        return bool(await self.rows("record_step", key=step.key, **recording(held, step)))

    async def promote(self, limit: int) -> int:
        """See the port."""
        promoted = 0
        keys: set[tuple[str, str]] = set()
        async with self.together():
            for queue, tenant, priority, seq, jobs, key in await self.rows("promote", limit=limit):
                promoted += jobs
                if key is None:
                    self.news.append(News(Lane(queue, tenant, priority), seq))
                else:
                    keys.add((tenant, key))
            await self.pass_turns(keys)
        return promoted

    async def each(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement for each of these, in their order."""
        statement = self._statements[name]
        await self._connection.executemany(
            statement.text, [[row[parameter] for parameter in statement.parameters] for row in rows]
        )

    async def lock_limits(self, worker: WorkerId, names: Collection[LimitName]) -> tuple[list[Limit], Instant] | None:
        """See the port."""
        lease = await self.rows("share_lease", worker=worker)
        if not lease:
            return None
        return await self.lock_rows(sorted(names)), Instant(lease[0][0])

    async def lock_rows(self, names: Sequence[LimitName]) -> list[Limit]:
        """Lock those of these limits that have a row, in the order given."""
        kinds, tenants, texts = (list(column) for column in zip(*names, strict=True))
        return [limit_of(row) for row in await self.rows("lock_limits", kinds=kinds, tenants=tenants, names=texts)]

    async def begin_keys(self, keys: Sequence[Key]) -> None:
        """Make sure that there is a row to lock for each of these."""
        await self.rows("begin_keys", tenants=[key[0] for key in keys], names=[key[1] for key in keys])

    async def next_in_line(self, asks: Sequence[Ask], queues: Sequence[str], types: Sequence[str]) -> Iterable[Row]:
        """Make ready the next that wait for these keys."""
        tenants, names, mosts, tokens = (list(column) for column in zip(*asks, strict=True))
        columns = {"tenants": tenants, "names": names, "mosts": mosts, "tokens": tokens}
        return await self.rows("pass_turns", **columns, queues=list(queues), types=list(types))

    async def yield_turn(self, holder: KeyHolder) -> bool:
        """Have a ready job wait for its key again, behind the others."""
        return await self.count("yield_turn", id=holder.id, seq=holder.seq) == 1

    async def uncounted(self, name: LimitName) -> int:
        """See the port."""
        statement = "uncounted_queue" if name.kind is LimitKind.QUEUE else "uncounted_tenant"
        return int((await self.rows(statement, name=name.name))[0][0])

    async def lock_ledger(self, tenant: str) -> Locked:
        """See the port."""
        state, known, *quotas, at = (await self.rows("lock_ledger", tenant=tenant))[0]
        return Locked(state, None if known is None else Quotas(*quotas), Instant(at))

    async def queue_backlogs(self, tenant: str, queues: Collection[str], most: int) -> dict[str, int]:
        """See the port."""
        rows = await self.rows("queue_backlogs", tenant=tenant, queues=list(queues), most=most)
        return {row[0]: row[1] for row in rows}

    async def tell(self, body: bytes) -> None:
        """Write a row of the feed."""
        await self.count("tell", body=body.decode())

    async def feed_at(self, numbers: Collection[int]) -> list[Entry]:
        """See the port."""
        return [entry_of(row) for row in await self.rows("feed_at", numbers=list(numbers))]

    async def put_rollups(self, span: int, rollups: Sequence[Rollup]) -> None:
        """Insert or replace these; the span in seconds."""
        names = (
            "tenants",
            "ats",
            "queues",
            "types",
            "submitted",
            "started",
            "succeeded",
            "failed",
            "dead",
            "cancelled",
        )
        *columns, waits, runs, costs, waited, reaped = (list(column) for column in zip(*rollups, strict=True))
        texts = {"waits": [each.decode() for each in waits], "runs": [each.decode() for each in runs]}
        texts |= {"costs": costs, "waited": waited, "reaped": reaped}
        await self.count("save_rollups", span=span, **dict(zip(names, columns, strict=True)), **texts)

    async def tell_moves(self, moves: Sequence[Transition]) -> None:
        """The statements that move jobs have told of it."""

    async def _moved(self, name: str, moves: Sequence[Transition], **columns: Any) -> Sequence[Row]:
        """Run a statement that moves jobs and tells of it; its rows, each beginning with an id."""
        body = feed.of_moves(moves, self.ended_at).decode()

        def truth(rows: Sequence[Row]) -> bytes | None:
            if len(rows) in (0, len(moves)):
                return None
            done = {row[0] for row in rows}
            return feed.of_moves([move for move in moves if move.id in done], self.ended_at)

        return await self.telling(name, {"body": body, "expected": len(moves), **columns}, truth)

    async def telling(
        self, name: str, columns: dict[str, Any], truth: Callable[[Sequence[Row]], bytes | None]
    ) -> Sequence[Row]:
        """Run a statement that writes its row of the feed itself if all goes as expected.

        If it does not, the row is written afterwards: `truth` tells from the statement's rows what it is to be, None if
        the statement wrote it. Where the statement is a transaction by itself (`strict`), it then fails instead,
        and is run again together with that.
        """
        if self._autocommit:
            try:
                return await self.rows(name, strict=True, **columns)
            except NotNullViolationError as error:
                if error.table_name != "holdfast_feed":
                    raise
        async with self.together():
            rows = await self.rows(name, strict=False, **columns)
            if (body := truth(rows)) is not None:
                await self.tell(body)
            return rows
