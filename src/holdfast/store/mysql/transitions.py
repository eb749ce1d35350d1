"""How jobs change state on MySQL and MariaDB: lock, compare, write. Nothing is written that was not locked before."""

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

_MOST_ROWS = 500
"""How many rows one statement names."""

_WIDEN = 4
"""By how much a claim widens its next look when lanes give less than their share."""


class TransitionsTx(LimitsTx):
    """Transitions of jobs within a transaction."""

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
        width = _enough(shares, limit)
        lives, lanes = await self.send(
            self.text("see_lease", worker=worker), self._visits(shares[:width], limit, types, without)
        )
        if not lives.rows:
            return []
        found = {row[0]: row for row in lanes.rows}
        visited = width
        while len(found) < limit and visited < len(shares):
            # Look further, but not at all the rest at once: what comes beyond the limit is locked until the commit.
            missing = limit - len(found)
            width = min(math.ceil(missing * visited / max(1, len(found))), _WIDEN * _enough(shares[visited:], missing))
            (lanes,) = await self.send(self._visits(shares[visited : visited + width], missing, types, without))
            found |= {row[0]: row for row in lanes.rows}
            visited += width
        at = Instant(lives.rows[0][0])
        taken = list(found.values())[:limit]
        jobs = [claimed_job(row, worker, at, slots(row[6], row[5], counting) if counting else 0) for row in taken]
        return jobs if await self._take(worker, at, jobs) else []

    async def _take(self, worker: WorkerId, at: Instant, taken: Sequence[Job]) -> bool:
        """Give locked jobs to a worker, if its lease lives: False if not, and then nothing is written.

        The lease is locked with the last message of the claim. Were it locked before, a worker whose event loop is
        blocked between two messages would keep its own lease from being renewed. The jobs are locked from the first
        message on: others pass them by, and when the worker stays silent the server gives them free.
        """
        if not taken:
            return False
        writes = [
            self.text("claimed", worker=worker, at=at, slots=marks, ids=items([job.id for job in part]))
            for marks in {job.slots for job in taken}
            for part in parts([job for job in taken if job.slots == marks])
        ]
        note = self.claim_note(worker, at, [(job.id.bytes, job.fence) for job in taken])
        told = self.text("append_claim_change", body=change_log.of_claimed(taken))
        _, first, *_ = await self.send_and_commit(self.text("lock_lease", worker=worker), *writes, note, told)
        self.changed = bool(first.matched)
        return self.changed

    @abstractmethod
    def claim_note(self, worker: WorkerId, at: Instant, taken: Sequence[tuple[bytes, int]]) -> str:
        """The statement that remembers which jobs a worker took, by their ids and fences."""

    async def finish(self, transitions: Sequence[Transition]) -> set[JobId]:
        """Move jobs from the live table to history or the dead letters."""
        done: set[JobId] = set()
        for part in _in_order(transitions):
            dead = [transition for transition in part if transition.to is Status.DEAD]
            rest = [transition for transition in part if transition.to is not Status.DEAD]
            done |= await self._finish("dead", dead) | await self._finish("history", rest)
        return done

    async def _finish(self, place: str, transitions: Sequence[Transition]) -> set[JobId]:
        if not transitions:
            return set()
        columns = ("of_id", "of_fence", "of_status", "of_worker", "becomes", "result", "log", "reason", "fingerprint")
        rows = [
            (m.id, m.fence, m.was.code, m.worker or 0, m.to.code, m.result, m.attempt_log, m.reason, m.fingerprint)
            for m in transitions
        ]
        ids = [transition.id for transition in transitions]
        if await self.count(f"finish_{place}", rows=self.table(columns, rows)) < len(ids):
            copied = await self.rows(f"finishing_{place}", ids=items(ids))
            ids = [JobId(UUID(bytes=row[0])) for row in copied]
        if ids:
            self.defer("finished", rows=self.table(("of_id",), [(job_id,) for job_id in ids]))
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

        return await self._put_back(transitions, "lock_live", ("requeue",), columns, change)

    async def revive(self, transitions: Sequence[Transition]) -> Iterable[Row]:
        """Move finished jobs back to the live table."""
        columns = ("of_id", "next_generation", "next_seq")

        def change(transition: Transition, seq: int) -> Row:
            return (transition.id, transition.generation, seq)

        dead = [transition for transition in transitions if transition.was is Status.DEAD]
        done = [transition for transition in transitions if transition.was is not Status.DEAD]
        revived = [
            *await self._put_back(dead, "lock_dead", ("revive_dead", "revived_dead"), columns, change),
            *await self._put_back(done, "lock_history", ("revive_history", "revived_history"), columns, change),
        ]
        late = {transition.id for transition in transitions if transition.job.deadline is not None}
        for part in parts([(row[0],) for row in revived if row[0] in late]):
            self.defer("watch_again", rows=self.table(("of_id",), part))
        return revived

    async def overdue(self, limit: int) -> list[Job]:
        asked = [row[0] for row in await self.rows("lock_deadlines", limit=limit)]
        found = [row for part in parts(asked) for row in await self.rows("watched", ids=items(part))]
        jobs = [job_of(row[:-1]) for row in found]
        later = [(job.id, job.deadline or 0) for job in jobs]
        for part in parts(later):
            self.defer("check_deadline_later", rows=self.table(("of_id", "its_deadline"), part))
        there = {job.id.bytes for job in jobs}
        for gone in parts([(job_id,) for job_id in asked if job_id not in there]):
            self.defer("unwatch", rows=self.table(("of_id",), gone))
        at = found[0][-1] if found else 0
        return [
            job for job in jobs if job.status is not Status.RUNNING and job.deadline is not None and job.deadline <= at
        ]

    async def promote(self, limit: int) -> int:
        due = await self.rows("lock_due", limit=limit)
        for start, part in zip(range(0, len(due), _MOST_ROWS), parts(due), strict=True):
            first = due[0][4] + start
            placed = [(row, first + position) for position, row in enumerate(part)]
            self.defer("promote", rows=self.table(("of_id", "next_seq"), [(row[0], seq) for row, seq in placed]))
            self.publish([(Lane(*row[1:4]), seq) for row, seq in placed if row[8] is None])
        if due:
            rows_told = [(JobId(UUID(bytes=row[0])), row[2], row[1], *row[5:8]) for row in due]
            await self.append_change(change_log.of_ready(rows_told))
            await self.pass_turns({(row[2], row[8].decode()) for row in due if row[8] is not None})
        return len(due)

    def publish(self, places: Iterable[tuple[Lane, int]]) -> None:
        """Jobs became ready at these positions: news of the first in each lane."""
        first: dict[Lane, int] = {}
        for lane, seq in places:
            if seq < first.get(lane, seq + 1):
                first[lane] = seq
        self.ready_lanes += [LaneReady(lane, seq) for lane, seq in first.items()]

    def _visits(self, shares: Sequence[Share], limit: int, types: Sequence[str] | None, without: Sequence[str]) -> str:
        """One statement that locks ready jobs in several lanes, one lane after the other."""
        name, given = "claim_lane", {}
        if types is not None:
            left = [each for each in types if each not in without]
            name, given = "claim_lane_types", {"types": items(left or [""])}  # no type has an empty name
        elif without:
            name, given = "claim_lane_without", {"types": items(without)}
        lanes = [
            self.text(name, **lane._asdict(), floor=floor, quota=min(quota, limit), **given)
            for lane, quota, floor in shares
        ]
        return f"({') UNION ALL ('.join(lanes)})"

    async def _held(self, lock: str, transitions: Sequence[Transition]) -> list[tuple[Transition, Row]]:
        """Lock these jobs; those that still are as they were read, with their rows."""
        rows = {row[0]: row for row in await self.rows(lock, ids=items([transition.id for transition in transitions]))}
        found = [(transition, rows.get(transition.id.bytes)) for transition in transitions]
        return [(transition, row) for transition, row in found if row is not None and _as_read(transition, row)]

    async def _put_back(
        self,
        transitions: Sequence[Transition],
        lock: str,
        writes: Sequence[str],
        columns: Sequence[str],
        change: Callable[[Transition, int], Row],
    ) -> list[Row]:
        """Give jobs that still are as they were read a new position; the rows that `requeue` and `revive` give."""
        moved: list[Row] = []
        for part in _in_order(transitions):
            held = await self._held(lock, part)
            placed = [(transition, row, row[7] + position) for position, (transition, row) in enumerate(held)]
            if not placed:
                continue
            rows = self.table(columns, [change(transition, seq) for transition, _, seq in placed])
            for name in writes:
                self.defer(name, rows=rows)
            moved += [(transition.id, stored_code(transition), *row[4:7], seq) for transition, row, seq in placed]
        return moved


def parts(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """As many as one statement names, at a time."""
    return (rows[start : start + _MOST_ROWS] for start in range(0, len(rows), _MOST_ROWS))


def _in_order(transitions: Sequence[Transition]) -> Iterator[Sequence[Transition]]:
    """In the order of their ids, which is the order of locking: two batches cannot lock each other out."""
    return parts(sorted(transitions, key=lambda transition: transition.id.int))


def _as_read(transition: Transition, row: Row) -> bool:
    _, fence, code, worker, *_ = row
    status = STATUS_OF_CODE[code].code
    if status in (2, 3, 4):  # who ran a finished job last does not matter any more
        return (fence, status) == (transition.fence, transition.was.code)
    return (fence, status, worker) == (transition.fence, transition.was.code, transition.worker or 0)


def _enough(shares: Sequence[Share], limit: int) -> int:
    """How many of the shares reach the limit, if every lane gives its share."""
    total = 0
    for width, share in enumerate(shares, 1):
        total += share.quota
        if total >= limit:
            return width
    return len(shares)
