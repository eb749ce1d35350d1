"""A transaction on SQLite: the database is in this process, so nothing here waits but for the lock at the start."""

import enum
import json
from collections.abc import Collection, Generator, Iterable, Sequence
from operator import itemgetter
from types import coroutine
from typing import Any
from uuid import UUID

import apsw

from holdfast.model import change_log
from holdfast.model.change_log import ChangeEntry
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import HeldJob, Job, NewJob
from holdfast.model.lane import Lane, LaneReady, Share
from holdfast.model.limit import Limit, LimitKind, LimitName, slots
from holdfast.model.state import AWAITING_KEY, Status
from holdfast.model.step import Step
from holdfast.model.time import Instant
from holdfast.model.transition import Transition
from holdfast.store.port.change_log import Rollup
from holdfast.store.port.limits import KeyHolder
from holdfast.store.sql.change_log import entry_of
from holdfast.store.sql.codec import Row, job_of, retry_bytes, tags_bytes
from holdfast.store.sql.limits import ConcurrencyKey, KeyCapacity, limit_of, stored_code
from holdfast.store.sql.steps import recording
from holdfast.store.sql.tx import KeyOwner, KeyRequest, SqlTx
from holdfast.store.sqlite.batched_statements import BatchedStatements

_READY, _SCHEDULED = Status.READY.code, Status.SCHEDULED.code
_by_position = itemgetter(1)


class Access(enum.Enum):
    """What a transaction may do. It asks for what it needs by awaiting, and is then run on from a fitting thread."""

    NONE = enum.auto()
    READ = enum.auto()
    WRITE = enum.auto()


class SqliteTx(SqlTx):
    """See `holdfast.store.port.store.Tx`."""

    def __init__(self, statements: BatchedStatements) -> None:
        super().__init__()
        self._statements = statements
        self._access = Access.NONE
        self._db: apsw.Connection

    def admit(self, db: apsw.Connection, access: Access) -> None:
        """A transaction has begun on this connection."""
        self._db = db
        self._access = access

    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""
        await self._enter(name)
        return _with_ids(self._execute(name, parameters))

    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""
        await self._enter(name)
        self._execute(name, parameters)
        return self._db.changes()

    async def insert_rows(self, jobs: Sequence[NewJob]) -> Instant:
        """Insert all jobs and return the insert time."""
        last, at = await self._draw(len(jobs))
        ready_lanes: dict[Lane, int] = {}
        rows = []
        for seq, job in enumerate(jobs, last + 1):
            due = job.scheduled_at if job.delay is None or job.scheduled_at is not None else at + job.delay
            status = _READY if job.concurrency_key is None else AWAITING_KEY
            if due is not None and due > at:
                status = _SCHEDULED
            elif status == _READY:
                ready_lanes.setdefault(Lane(job.queue, job.tenant, job.priority), seq)
            rows.append((
                seq, job.id.bytes, job.tenant, job.queue, job.type, job.payload, job.priority, job.max_attempts,
                job.cost, at, due, job.timeout, job.deadline, retry_bytes(job), tags_bytes(job), job.concurrency_key,
                job.idempotency_key, status,
            ))  # fmt: skip
        self._write("insert", rows)
        self._append_change(change_log.of_new(jobs, [row[-1] == _SCHEDULED for row in rows]))
        self.ready_lanes += [LaneReady(lane, seq) for lane, seq in ready_lanes.items()]
        return Instant(at)

    async def take_keys(self, claims: Sequence[KeyRequest]) -> None:
        """Insert the keys that do not exist."""
        await self._each("take_keys", [(*c.name, c.job_id.bytes, c.fingerprint, c.span) for c in claims])

    async def lock_keys(self, claims: Sequence[KeyRequest]) -> dict[tuple[str, int, str], KeyOwner]:
        """Tell whose these keys are; the write lock is held already."""
        rows = await self._each("lock_keys", [c.name for c in claims])
        return {
            (tenant, kind, key): KeyOwner(_id_of(job_id), fingerprint, bool(valid))
            for tenant, kind, key, job_id, fingerprint, valid in rows
        }

    async def retake_keys(self, claims: Sequence[KeyRequest]) -> None:
        """Give these keys to other jobs."""
        await self._each("retake_keys", [(c.job_id.bytes, c.fingerprint, c.span, *c.name) for c in claims])

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
        await self._enter("claim")
        if not self._execute("lease", {"worker": worker}):
            return []
        wanted = None if types is None else json.dumps(list(types))
        unwanted = json.dumps(list(without)) if without else None
        text = self._statements["claim"].text
        claimed: list[Job] = []
        for (queue, tenant, priority), quota, floor in shares:
            if (left := limit - len(claimed)) <= 0:
                break
            marks = slots(queue, tenant, counting) if counting else 0
            given = (queue, tenant, priority, floor, wanted, wanted, unwanted, unwanted, min(quota, left))
            asked = (worker, marks, *given)
            rows = self._db.execute(text, asked).fetchall()
            claimed += [job_of(row) for row in _with_ids(sorted(rows, key=_by_position))]
        if claimed:
            self._append_change(change_log.of_claimed(claimed))
        return claimed

    async def finish(self, transitions: Sequence[Transition]) -> set[JobId]:
        """Move jobs from the live table to history or the dead letters."""
        await self._enter("leave")
        done: set[JobId] = set()
        for name, dead in (("finish_history", False), ("finish_dead", True)):
            if here := [transition for transition in transitions if (transition.to is Status.DEAD) is dead]:
                done |= self._finish(name, here)
        return done

    async def requeue(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Requeue jobs in place."""
        last, _ = await self._draw(len(transitions))
        rows = [
            (
                stored_code(m),
                m.attempts,
                m.releases,
                m.delay,
                m.attempt_log,
                seq,
                m.id.bytes,
                m.fence,
                m.was.code,
                m.worker,
            )
            for seq, m in enumerate(transitions, last + 1)
        ]
        return _with_ids(await self._each("requeue", rows))

    async def revive(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Move finished jobs back to the live table."""
        last, _ = await self._draw(len(transitions))
        revived: list[Row] = []
        for seq, transition in enumerate(transitions, last + 1):
            place = "dead" if transition.was is Status.DEAD else "history"
            rows = await self._each(
                f"revive_{place}",
                [(seq, transition.generation, transition.id.bytes, transition.fence, transition.was.code)],
            )
            if rows:
                await self._each(f"leave_{place}", [(transition.id.bytes,)])
                revived += _with_ids(rows)
        return revived

    async def get(self, ids: Collection[JobId]) -> list[Job]:
        return [job_of(row) for row in _with_ids(await self._each("get", [(i.bytes,) * 3 for i in ids]))]

    async def remove_rows(self, place: str, jobs: Sequence[Job]) -> set[JobId]:
        """Delete the rows of a table that are unchanged since they were read; return their ids."""
        rows = await self._each(f"remove_{place}", [(job.id.bytes, job.fence, job.status.code) for job in jobs])
        return {row[0] for row in _with_ids(rows)}

    async def remove_steps(self, ids: Collection[JobId]) -> None:
        """Delete the steps of these jobs."""
        await self._each("remove_steps", [(job_id.bytes,) for job_id in ids])

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        rows = await self._each("still_held", [(job.id.bytes, job.fence, job.worker) for job in held])
        return {job.id for job in held} - {row[0] for row in _with_ids(rows)}

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        return await self.count("record_step", key=step.key, **recording(held, step)) == 1

    async def promote(self, limit: int) -> int:
        due = await self.rows("due", limit=limit)
        if not due:
            return 0
        last, _ = await self._draw(len(due))
        ready_lanes: dict[Lane, int] = {}
        rows = _with_ids(await self._each("promote", [(becomes, seq) for becomes, (seq,) in enumerate(due, last + 1)]))
        for _, queue, tenant, priority, seq, *_, key in rows:
            if key is None:
                ready_lanes.setdefault(Lane(queue, tenant, priority), seq)
        self._append_change(change_log.of_ready([(row[0], row[2], row[1], *row[5:8]) for row in rows]))
        self.ready_lanes += [LaneReady(lane, seq) for lane, seq in ready_lanes.items()]
        await self.pass_turns({(row[2], row[8]) for row in rows if row[8] is not None})
        return len(due)

    async def each(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement for each row, in order."""
        for row in rows:
            await self.count(name, **row)

    async def lock_limits(self, worker: WorkerId, names: Collection[LimitName]) -> tuple[list[Limit], Instant] | None:
        await self._enter("save_limit")
        if not self._execute("lease", {"worker": worker}):
            return None
        return await self.lock_rows(sorted(names)), await self.now()

    async def lock_rows(self, names: Sequence[LimitName]) -> list[Limit]:
        """Tell how these limits stand; the write lock is held, or asked for here."""
        await self._enter("save_limit")
        return [
            limit_of(row)
            for kind, tenant, name in names
            for row in await self.rows("limit_named", kind=int(kind), tenant=tenant, name=name)
        ]

    async def begin_keys(self, keys: Sequence[ConcurrencyKey]) -> None:
        """There is nothing to lock but the whole."""

    async def next_in_line(
        self, asks: Sequence[KeyCapacity], queues: Sequence[str], types: Sequence[str]
    ) -> Iterable[Row]:
        """Make the next jobs that wait for these keys ready."""
        passed: list[Row] = []
        spared = {"queues": json.dumps(list(queues)), "types": json.dumps(list(types))}
        for tenant, name, most, tokens in asks:
            taken = (await self.rows("turns_taken", tenant=tenant, name=name))[0][0]
            if (room := min(most - taken, tokens)) > 0:
                passed += await self.rows("pass_turns", tenant=tenant, name=name, room=room, **spared)
        return passed

    async def yield_turn(self, holder: KeyHolder) -> bool:
        """Put a ready job at the end of the line for its key."""
        last, _ = await self._draw(1)
        return await self.count("yield_turn", id=holder.id, seq=holder.seq, next=last + 1) == 1

    async def uncounted(self, name: LimitName) -> int:
        statement = "uncounted_queue" if name.kind is LimitKind.QUEUE else "uncounted_tenant"
        return int((await self.rows(statement, name=name.name))[0][0])

    async def append_change(self, body: bytes) -> None:
        """Append an entry to the change log."""
        await self._enter("append_change")
        self._append_change(body)

    async def changes_at(self, numbers: Collection[int]) -> list[ChangeEntry]:
        return [entry_of(row) for row in await self.rows("changes_at", numbers=json.dumps(list(numbers)))]

    async def put_rollups(self, span: int, rollups: Sequence[Rollup]) -> None:
        """Insert or replace these roll-ups; the span is in seconds."""
        await self._each("save_rollups", [(span, *rollup) for rollup in rollups])

    async def _enter(self, name: str) -> None:
        """Make sure that this statement may run: from here on the work may be on another thread, or start again."""
        wanted = Access.WRITE if self._statements.writes(name) else Access.READ
        if self._access is Access.NONE or (wanted is Access.WRITE and self._access is Access.READ):
            await _ask(wanted)

    async def _draw(self, positions: int) -> tuple[int, int]:
        """Reserve places at the end of the line: the last one taken before, and the time."""
        last, at = (await self.rows("next_positions", positions=positions))[0]
        return last, at

    async def _each(self, name: str, rows: Sequence[Sequence[Any]]) -> Sequence[Row]:
        """Run a statement once for each row; what all of them returned."""
        await self._enter(name)
        return self._db.executemany(self._statements[name].text, rows).fetchall()

    def _execute(self, name: str, parameters: dict[str, Any]) -> Sequence[Row]:
        statement = self._statements[name]
        values = [_bound(parameters[parameter]) for parameter in statement.parameters]
        return self._db.execute(statement.text, values).fetchall()

    def _append_change(self, body: bytes) -> None:
        self._db.execute(self._statements["append_change"].text, (body,))

    def _write(self, name: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for many rows at a time; how many rows it changed."""
        changed = 0
        for text, values in self._statements.chunks(name, rows):
            self._db.execute(text, values)
            changed += self._db.changes()
        return changed

    def _finish(self, name: str, transitions: Sequence[Transition]) -> set[JobId]:
        rows = [
            (m.id.bytes, m.fence, m.was.code, m.worker, m.to.code, m.result, m.attempt_log, m.reason, m.fingerprint)
            for m in transitions
        ]
        if self._write(name, rows) == len(transitions):
            done = [transition.id for transition in transitions]
        else:  # seldom: some were taken away from their holder
            asked = [row[:4] for row in rows]
            taken: Sequence[Row] = self._db.executemany(self._statements["unchanged"].text, asked).fetchall()
            done = [_id_of(row[0]) for row in taken]
        self._write("leave", [(job_id.bytes,) for job_id in done])
        return set(done)


@coroutine
def _ask(access: Access) -> Generator[Access, None, None]:
    yield access


def _bound(value: Any) -> Any:
    return value.bytes if isinstance(value, UUID) else value


def _id_of(stored: bytes) -> JobId:
    return JobId(UUID(int=int.from_bytes(stored)))


def _with_ids(rows: Sequence[Row]) -> Sequence[Row]:
    """The same rows, where they begin with an id; no statement begins with other bytes."""
    if not rows or not isinstance(rows[0][0], bytes):
        return rows
    return [(_id_of(row[0]), *row[1:]) for row in rows]
