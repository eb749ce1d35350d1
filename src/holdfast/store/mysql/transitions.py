"""Claims and job transitions on MySQL and MariaDB: lock the rows, compare them, then write."""

import math
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar
from uuid import UUID

from holdfast.model import change_log
from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Job
from holdfast.model.lane import Lane, LaneReady, Share
from holdfast.model.limit import LimitName, slots
from holdfast.model.state import STATUS_OF_CODE, Status
from holdfast.model.time import Instant
from holdfast.model.transition import Transition
from holdfast.store.mysql.limits import LimitsTx
from holdfast.store.mysql.literal import items
from holdfast.store.mysql.rows import claimed_job
from holdfast.store.sql.codec import Row, job_of
from holdfast.store.sql.limits import stored_code

T = TypeVar("T")

_BATCH_SIZE = 500
"""Number of rows per statement."""

_WIDEN_FACTOR = 4
"""Maximum factor by which a claim visits more lanes if lanes have too few jobs."""


class TransitionsTx(LimitsTx):
    """Claims and transitions of jobs within a transaction."""

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
        if limit <= 0 or not shares or (types is not None and not types):
            return []
        width = _lanes_needed(shares, limit)
        lease, lanes = await self.send(
            self.text("read_lease", worker=worker), self._lock_ready(shares[:width], limit, types, without)
        )
        if not lease.rows:
            return []
        found = {row[0]: row for row in lanes.rows}
        visited = width
        while len(found) < limit and visited < len(shares):
            # Visit more lanes, but not all the rest: jobs beyond the limit stay locked until the commit.
            missing = limit - len(found)
            width = min(
                math.ceil(missing * visited / max(1, len(found))),
                _WIDEN_FACTOR * _lanes_needed(shares[visited:], missing),
            )
            (lanes,) = await self.send(self._lock_ready(shares[visited : visited + width], missing, types, without))
            found |= {row[0]: row for row in lanes.rows}
            visited += width
        at = Instant(lease.rows[0][0])
        locked = list(found.values())[:limit]
        jobs = [claimed_job(row, worker, at, slots(row[6], row[5], counting) if counting else 0) for row in locked]
        return jobs if await self._write_claim(worker, at, jobs) else []

    async def _write_claim(self, worker: WorkerId, at: Instant, jobs: Sequence[Job]) -> bool:
        """Assign locked jobs to a worker; return False, without writing, if its lease has expired.

        The last message of the claim locks the lease. If an earlier one did, a worker whose event loop is blocked
        between two messages would block the renewal of its own lease. The jobs are locked from the first message on:
        other claims skip them, and the server releases them if the worker stays silent.
        """
        if not jobs:
            return False
        writes = [
            self.text("assign_jobs", worker=worker, at=at, slots=slots_bits, ids=items([job.id for job in part]))
            for slots_bits in {job.slots for job in jobs}
            for part in parts([job for job in jobs if job.slots == slots_bits])
        ]
        claim = self.record_claim(worker, at, [(job.id.bytes, job.fence) for job in jobs])
        change = self.text("append_claim_change", body=change_log.encode_claim(jobs))
        _, first, *_ = await self.send_and_commit(self.text("lock_lease", worker=worker), *writes, claim, change)
        self.changed = bool(first.matched)
        return self.changed

    @abstractmethod
    def record_claim(self, worker: WorkerId, at: Instant, claimed: Sequence[tuple[bytes, int]]) -> str:
        """Return the statement that records which jobs a worker claimed, by id and fence."""

    async def finish(self, transitions: Sequence[Transition]) -> set[JobId]:
        """Move jobs from the live table to history or the dead letters."""
        done: set[JobId] = set()
        for part in _in_order(transitions):
            dead = [transition for transition in part if transition.to is Status.DEAD]
            rest = [transition for transition in part if transition.to is not Status.DEAD]
            done |= await self._finish("dead", dead) | await self._finish("history", rest)
        return done

    async def _finish(self, table: str, transitions: Sequence[Transition]) -> set[JobId]:
        if not transitions:
            return set()
        columns = ("of_id", "of_fence", "of_status", "of_worker", "becomes", "result", "log", "reason", "fingerprint")
        rows = [
            (m.id, m.fence, m.was.code, m.worker or 0, m.to.code, m.result, m.attempt_log, m.reason, m.fingerprint)
            for m in transitions
        ]
        ids = [transition.id for transition in transitions]
        if await self.count(f"finish_{table}", rows=self.table(columns, rows)) < len(ids):
            copied = await self.rows(f"copied_to_{table}", ids=items(ids))
            ids = [JobId(UUID(bytes=row[0])) for row in copied]
        if ids:
            self.defer("delete_live", rows=self.table(("of_id",), [(job_id,) for job_id in ids]))
        return set(ids)

    async def requeue(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Requeue jobs in place."""
        columns = ("of_id", "becomes", "next_attempts", "next_releases", "delay", "log", "next_seq")

        def change(transition: Transition, seq: int) -> Row:
            return (
                transition.id,
                stored_code(transition),
                transition.attempts,
                transition.releases,
                transition.delay,
                transition.attempt_log,
                seq,
            )

        return await self._reposition(transitions, "lock_live", ("requeue",), columns, change)

    async def revive(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Move finished jobs back to the live table."""
        columns = ("of_id", "next_generation", "next_seq")

        def change(transition: Transition, seq: int) -> Row:
            return (transition.id, transition.generation, seq)

        dead = [transition for transition in transitions if transition.was is Status.DEAD]
        done = [transition for transition in transitions if transition.was is not Status.DEAD]
        revived = [
            *await self._reposition(dead, "lock_dead", ("revive_dead", "delete_dead"), columns, change),
            *await self._reposition(done, "lock_history", ("revive_history", "delete_history"), columns, change),
        ]
        with_deadline = {transition.id for transition in transitions if transition.job.deadline is not None}
        for part in parts([(row[0],) for row in revived if row[0] in with_deadline]):
            self.defer("watch_again", rows=self.table(("of_id",), part))
        return revived

    async def overdue(self, limit: int) -> list[Job]:
        due = [row[0] for row in await self.rows("lock_deadlines", limit=limit)]
        found = [row for part in parts(due) for row in await self.rows("watched", ids=items(part))]
        jobs = [job_of(row[:-1]) for row in found]
        for part in parts([(job.id, job.deadline or 0) for job in jobs]):
            self.defer("check_deadline_later", rows=self.table(("of_id", "its_deadline"), part))
        unfinished = {job.id.bytes for job in jobs}
        for gone in parts([(job_id,) for job_id in due if job_id not in unfinished]):
            self.defer("unwatch", rows=self.table(("of_id",), gone))
        at = found[0][-1] if found else 0
        return [
            job for job in jobs if job.status is not Status.RUNNING and job.deadline is not None and job.deadline <= at
        ]

    async def promote(self, limit: int) -> int:
        due = await self.rows("lock_due", limit=limit)
        for start, part in zip(range(0, len(due), _BATCH_SIZE), parts(due), strict=True):
            first = due[0][4] + start
            placed = [(row, first + position) for position, row in enumerate(part)]
            self.defer("promote", rows=self.table(("of_id", "next_seq"), [(row[0], seq) for row, seq in placed]))
            self.note_ready([(Lane(*row[1:4]), seq) for row, seq in placed if row[8] is None])
        if due:
            promoted = [(JobId(UUID(bytes=row[0])), row[2], row[1], *row[5:8]) for row in due]
            await self.append_change(change_log.encode_promotions(promoted))
            await self.grant_key_slots({(row[2], row[8].decode()) for row in due if row[8] is not None})
        return len(due)

    def note_ready(self, positions: Iterable[tuple[Lane, int]]) -> None:
        """Note that jobs became ready at these positions; keeps the first of each lane."""
        first: dict[Lane, int] = {}
        for lane, seq in positions:
            if seq < first.get(lane, seq + 1):
                first[lane] = seq
        self.ready_lanes += [LaneReady(lane, seq) for lane, seq in first.items()]

    def _lock_ready(
        self, shares: Sequence[Share], limit: int, types: Sequence[str] | None, without: Sequence[str]
    ) -> str:
        """Return one statement that locks ready jobs in several lanes, lane by lane."""
        name, condition = "claim_lane", {}
        if types is not None:
            allowed = [job_type for job_type in types if job_type not in without]
            name, condition = "claim_lane_types", {"types": items(allowed or [""])}  # no type has an empty name
        elif without:
            name, condition = "claim_lane_without", {"types": items(without)}
        lanes = [
            self.text(name, **lane._asdict(), floor=floor, max_jobs=min(max_jobs, limit), **condition)
            for lane, max_jobs, floor in shares
        ]
        return f"({') UNION ALL ('.join(lanes)})"

    async def _lock_unchanged(self, lock: str, transitions: Sequence[Transition]) -> list[tuple[Transition, Row]]:
        """Lock these jobs; return those that are unchanged since they were read, with their rows."""
        rows = {row[0]: row for row in await self.rows(lock, ids=items([transition.id for transition in transitions]))}
        found = [(transition, rows.get(transition.id.bytes)) for transition in transitions]
        return [(transition, row) for transition, row in found if row is not None and _is_unchanged(transition, row)]

    async def _reposition(
        self,
        transitions: Sequence[Transition],
        lock: str,
        writes: Sequence[str],
        columns: Sequence[str],
        change: Callable[[Transition, int], Row],
    ) -> list[Row]:
        """Write unchanged jobs with a new position; return the rows of `requeue` and `revive`."""
        written: list[Row] = []
        for part in _in_order(transitions):
            locked = await self._lock_unchanged(lock, part)
            placed = [(transition, row, row[7] + position) for position, (transition, row) in enumerate(locked)]
            if not placed:
                continue
            rows = self.table(columns, [change(transition, seq) for transition, _, seq in placed])
            for name in writes:
                self.defer(name, rows=rows)
            written += [(transition.id, stored_code(transition), *row[4:7], seq) for transition, row, seq in placed]
        return written


def parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split rows into batches for one statement each."""
    return (rows[start : start + _BATCH_SIZE] for start in range(0, len(rows), _BATCH_SIZE))


def _in_order(transitions: Sequence[Transition]) -> Iterator[Sequence[Transition]]:
    """Split transitions in the order of ids, so that two batches cannot deadlock."""
    return parts(sorted(transitions, key=lambda transition: transition.id.int))


def _is_unchanged(transition: Transition, row: Row) -> bool:
    _, fence, code, worker, *_ = row
    status = STATUS_OF_CODE[code]
    if status.terminal:  # the worker that ran a finished job last does not matter
        return (fence, status) == (transition.fence, transition.was)
    return (fence, status, worker) == (transition.fence, transition.was, transition.worker or 0)


def _lanes_needed(shares: Sequence[Share], limit: int) -> int:
    """Return how many lanes reach the limit if each has as many jobs as its share allows."""
    total = 0
    for width, share in enumerate(shares, 1):
        total += share.max_jobs
        if total >= limit:
            return width
    return len(shares)
