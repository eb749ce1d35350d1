"""Transaction on SQLite. Only the lock at its start can block."""

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
from holdfast.store.sql.steps import step_parameters
from holdfast.store.sql.tx import KeyOwner, KeyRequest, SqlTx
from holdfast.store.sqlite.batched_statements import BatchedStatements

_READY, _SCHEDULED = Status.READY.code, Status.SCHEDULED.code
_by_position = itemgetter(1)


class AccessMode(enum.Enum):
    """Access of a transaction, which requests it by awaiting and continues on that thread."""

    NONE = enum.auto()
    READ = enum.auto()
    WRITE = enum.auto()


class SqliteTx(SqlTx):
    """Transaction on an SQLite connection."""

    def __init__(self, statements: BatchedStatements) -> None:
        super().__init__()
        self._statements = statements
        self._access = AccessMode.NONE
        self._db: apsw.Connection

    def attach(self, db: apsw.Connection, access: AccessMode) -> None:
        """Set the connection on which the transaction has begun."""
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
        last, at = await self._next_positions(len(jobs))
        ready_lanes: dict[Lane, int] = {}
        rows = []
        for seq, job in enumerate(jobs, last + 1):
            spec = job.spec
            due = spec.scheduled_at if spec.delay is None or spec.scheduled_at is not None else at + spec.delay
            status = _READY if spec.concurrency_key is None else AWAITING_KEY
            if due is not None and due > at:
                status = _SCHEDULED
            elif status == _READY:
                ready_lanes.setdefault(Lane(spec.queue, spec.tenant, spec.priority), seq)
            rows.append((
                seq, job.id.bytes, spec.tenant, spec.queue, spec.type, job.payload, spec.priority, job.max_attempts,
                spec.cost, at, due, spec.timeout, spec.deadline, retry_bytes(job), tags_bytes(job),
                spec.concurrency_key, spec.idempotency_key, status,
            ))  # fmt: skip
        self._write("insert", rows)
        self._append_change(change_log.encode_submission(jobs, [row[-1] == _SCHEDULED for row in rows]))
        self.ready_lanes += [LaneReady(lane, seq) for lane, seq in ready_lanes.items()]
        return Instant(at)

    async def take_keys(self, requests: Sequence[KeyRequest]) -> None:
        """Insert the keys that do not exist."""
        await self._each(
            "take_keys",
            [(*request.name, request.job_id.bytes, request.fingerprint, request.span) for request in requests],
        )

    async def lock_keys(self, requests: Sequence[KeyRequest]) -> dict[tuple[str, int, str], KeyOwner]:
        """Return the owners of these keys; the write lock is already held."""
        rows = await self._each("lock_keys", [request.name for request in requests])
        return {
            (tenant, kind, key): KeyOwner(_id_of(job_id), fingerprint, bool(valid))
            for tenant, kind, key, job_id, fingerprint, valid in rows
        }

    async def reassign_keys(self, requests: Sequence[KeyRequest]) -> None:
        """Reassign these keys to other jobs."""
        await self._each(
            "reassign_keys",
            [(request.job_id.bytes, request.fingerprint, request.span, *request.name) for request in requests],
        )

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
        included = None if types is None else json.dumps(list(types))
        excluded = json.dumps(list(without)) if without else None
        text = self._statements["claim"].text
        claimed: list[Job] = []
        for (queue, tenant, priority), max_jobs, floor in shares:
            if (left := limit - len(claimed)) <= 0:
                break
            counted_by = slots(queue, tenant, counting) if counting else 0
            lane = (queue, tenant, priority, floor, included, included, excluded, excluded, min(max_jobs, left))
            rows = self._db.execute(text, (worker, counted_by, *lane)).fetchall()
            claimed += [job_of(row) for row in _with_ids(sorted(rows, key=_by_position))]
        if claimed:
            self._append_change(change_log.encode_claim(claimed))
        return claimed

    async def finish(self, transitions: Sequence[Transition]) -> set[JobId]:
        """Move jobs from the live table to history or the dead letters."""
        await self._enter("delete_live")
        done: set[JobId] = set()
        for name, dead in (("finish_history", False), ("finish_dead", True)):
            if group := [transition for transition in transitions if (transition.to is Status.DEAD) is dead]:
                done |= self._finish(name, group)
        return done

    async def requeue(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Requeue jobs in place."""
        last, _ = await self._next_positions(len(transitions))
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
        last, _ = await self._next_positions(len(transitions))
        revived: list[Row] = []
        for seq, transition in enumerate(transitions, last + 1):
            table = "dead" if transition.was is Status.DEAD else "history"
            rows = await self._each(
                f"revive_{table}",
                [(seq, transition.generation, transition.id.bytes, transition.fence, transition.was.code)],
            )
            if rows:
                await self._each(f"delete_{table}", [(transition.id.bytes,)])
                revived += _with_ids(rows)
        return revived

    async def get(self, ids: Collection[JobId]) -> list[Job]:
        return [job_of(row) for row in _with_ids(await self._each("get", [(i.bytes,) * 3 for i in ids]))]

    async def remove_rows(self, table: str, jobs: Sequence[Job]) -> set[JobId]:
        """Delete the rows of a table that are unchanged since they were read; return their ids."""
        rows = await self._each(f"remove_{table}", [(job.id.bytes, job.fence, job.status.code) for job in jobs])
        return {row[0] for row in _with_ids(rows)}

    async def remove_steps(self, ids: Collection[JobId]) -> None:
        """Delete the steps of these jobs."""
        await self._each("remove_steps", [(job_id.bytes,) for job_id in ids])

    async def ready_queues(self, queues: Sequence[str]) -> set[str]:
        return {row[0] for row in await self.rows("ready_queues", queues=json.dumps(list(queues)))}

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        rows = await self._each("still_held", [(job.id.bytes, job.fence, job.worker) for job in held])
        return {job.id for job in held} - {row[0] for row in _with_ids(rows)}

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        return await self.count("record_step", key=step.key, **step_parameters(held, step)) == 1

    async def promote(self, limit: int) -> int:
        due = await self.rows("due", limit=limit)
        if not due:
            return 0
        last, _ = await self._next_positions(len(due))
        ready_lanes: dict[Lane, int] = {}
        rows = _with_ids(await self._each("promote", [(becomes, seq) for becomes, (seq,) in enumerate(due, last + 1)]))
        for _, queue, tenant, priority, seq, *_, key in rows:
            if key is None:
                ready_lanes.setdefault(Lane(queue, tenant, priority), seq)
        self._append_change(change_log.encode_promotions([(row[0], row[2], row[1], *row[5:8]) for row in rows]))
        self.ready_lanes += [LaneReady(lane, seq) for lane, seq in ready_lanes.items()]
        await self.grant_key_slots({(row[2], row[8]) for row in rows if row[8] is not None})
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
        """Return these limits, after acquiring the write lock."""
        await self._enter("save_limit")
        return [
            limit_of(row)
            for kind, tenant, name in names
            for row in await self.rows("limit_named", kind=int(kind), tenant=tenant, name=name)
        ]

    async def begin_keys(self, keys: Sequence[ConcurrencyKey]) -> None:
        """Do nothing: the write lock covers the whole database, so rows need not exist to be locked."""

    async def grant_slots(
        self, capacities: Sequence[KeyCapacity], queues: Sequence[str], types: Sequence[str]
    ) -> Iterable[Row]:
        """Make the next jobs that wait for these keys ready."""
        granted: list[Row] = []
        excluded = {"queues": json.dumps(list(queues)), "types": json.dumps(list(types))}
        for tenant, name, slots_in_total, tokens in capacities:
            used = (await self.rows("count_key_holders", tenant=tenant, name=name))[0][0]
            if (room := min(slots_in_total - used, tokens)) > 0:
                granted += await self.rows("grant_slots", tenant=tenant, name=name, room=room, **excluded)
        return granted

    async def yield_slot(self, holder: KeyHolder) -> bool:
        """Move a ready job behind the jobs that wait for its key."""
        last, _ = await self._next_positions(1)
        return await self.count("yield_slot", id=holder.id, seq=holder.seq, next=last + 1) == 1

    async def uncounted(self, name: LimitName) -> int:
        statement = "uncounted_queue" if name.kind is LimitKind.QUEUE else "uncounted_tenant"
        return int((await self.rows(statement, name=name.name))[0][0])

    async def append_change(self, body: bytes) -> None:
        """Append an entry to the change log."""
        await self._enter("append_change")
        self._append_change(body)

    async def changes_at(self, numbers: Collection[int]) -> list[ChangeEntry]:
        return [entry_of(row) for row in await self.rows("changes_at", numbers=json.dumps(list(numbers)))]

    async def write_rollups(self, span: int, rollups: Sequence[Rollup]) -> None:
        """Insert or replace these rollups; the span is in seconds."""
        await self._each("save_rollups", [(span, *rollup) for rollup in rollups])

    async def _enter(self, name: str) -> None:
        """Acquire the access that a statement needs, which may switch threads or restart the work."""
        needed = AccessMode.WRITE if self._statements.writes(name) else AccessMode.READ
        if self._access is AccessMode.NONE or (needed is AccessMode.WRITE and self._access is AccessMode.READ):
            await _request(needed)

    async def _next_positions(self, positions: int) -> tuple[int, int]:
        """Reserve positions; return the last position before them, and the time."""
        last, at = (await self.rows("next_positions", positions=positions))[0]
        return last, at

    async def _each(self, name: str, rows: Sequence[Sequence[Any]]) -> Sequence[Row]:
        """Run a statement once for each row; return all rows that they return."""
        await self._enter(name)
        return self._db.executemany(self._statements[name].text, rows).fetchall()

    def _execute(self, name: str, parameters: dict[str, Any]) -> Sequence[Row]:
        statement = self._statements[name]
        values = [_bound(parameters[parameter]) for parameter in statement.parameters]
        return self._db.execute(statement.text, values).fetchall()

    def _append_change(self, body: bytes) -> None:
        self._db.execute(self._statements["append_change"].text, (body,))

    def _write(self, name: str, rows: Sequence[Sequence[Any]]) -> int:
        """Run a statement for many rows at a time; return the number of changed rows."""
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
        else:  # rare: some jobs changed since they were read
            expected = [row[:4] for row in rows]
            unchanged: Sequence[Row] = self._db.executemany(self._statements["unchanged"].text, expected).fetchall()
            done = [_id_of(row[0]) for row in unchanged]
        self._write("delete_live", [(job_id.bytes,) for job_id in done])
        return set(done)


@coroutine
def _request(access: AccessMode) -> Generator[AccessMode, None, None]:
    yield access


def _bound(value: Any) -> Any:
    return value.bytes if isinstance(value, UUID) else value


def _id_of(stored: bytes) -> JobId:
    return JobId(UUID(int=int.from_bytes(stored)))


def _with_ids(rows: Sequence[Row]) -> Sequence[Row]:
    """Decode ids in the first column; no statement returns other bytes there."""
    if not rows or not isinstance(rows[0][0], bytes):
        return rows
    return [(_id_of(row[0]), *row[1:]) for row in rows]
