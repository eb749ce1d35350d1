"""What workers hold on MySQL and MariaDB, found by what they claimed: see the table holdfast_claims."""

import math
from collections.abc import AsyncIterator, Collection, Iterable, Sequence

from holdfast.model.ids import WorkerId
from holdfast.model.job import Job
from holdfast.model.time import Instant, seconds
from holdfast.store.mysql.literal import items
from holdfast.store.mysql.transitions import TransitionsTx, parts
from holdfast.store.sql.codec import Row, job_of

_ID = 16
_MOST_IDS = 250
"""How many jobs one row names: with more, the database would put the ids on a page of their own."""

_MOST_ROWS = 8
"""How many rows are looked through at a time."""

_FIRST_LOOK = seconds(2)
_MOST_LOOKS = 8
_NAMES = ("of_worker", "of_id", "of_fence")


class ClaimsTx(TransitionsTx):
    """The part of a transaction that knows what was claimed."""

    def claim_note(self, worker: WorkerId, at: Instant, taken: Sequence[tuple[bytes, int]]) -> str:
        """The statement that remembers which jobs a worker took, by their ids and fences."""
        loads = [taken[start : start + _MOST_IDS] for start in range(0, len(taken), _MOST_IDS)]
        rows = [(worker, *load[0], at + _FIRST_LOOK, b"".join([job_id for job_id, _ in load])) for load in loads]
        return self.text("note_claim", rows=self.table((*_NAMES, "next_look", "taken"), rows))

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        return await self._lock("lock_holding", worker, limit)

    async def orphans(self, limit: int) -> list[Job]:
        found: list[Job] = []
        for row in await self.rows("orphaned_claims", limit=limit):
            if len(found) < limit:
                found += await self._lock("lock_orphaned", WorkerId(row[0]), limit - len(found))
        return found

    async def depart(self, worker: WorkerId) -> bool:
        return not await self._holds(worker) and await self.remove_workers("depart", [worker]) == 1

    async def forget(self, workers: Collection[WorkerId]) -> int:
        return await self.remove_workers("forget", [each for each in sorted(workers) if not await self._holds(each)])

    async def compact_claims(self, limit: int) -> int:
        """Look through claims whose time has come, and drop what their workers do not hold any more; how many."""
        claims = await self.rows("lock_claims", limit=limit)
        held = await self._held_of([(claim[0], job_id) for claim in claims for job_id in _split(claim[4])])
        gone: list[Row] = []
        kept: list[Row] = []
        for worker, first, fence, looks, ids in claims:
            left = b"".join([job_id for job_id in _split(ids) if (worker, job_id) in held])
            more = min(looks + 1, _MOST_LOOKS)
            if left:
                kept.append((worker, first, fence, left, more, _FIRST_LOOK << more))
            else:
                gone.append((worker, first, fence))
        self._forget_claims(gone)
        if kept:
            self.defer("keep_claims", rows=self.table((*_NAMES, "held", "next_looks", "pause"), kept))
        return len(claims)

    async def _holds(self, worker: WorkerId) -> bool:
        # Locked by a statement of its own: the next ones then see what a claim that was under way has taken.
        await self.rows("lock_worker", worker=worker)
        async for _ in self._holding(worker, 1):
            return True
        return False

    async def _lock(self, statement: str, worker: WorkerId, limit: int) -> list[Job]:
        """Lock what a worker holds, in the order of ids."""
        ids: set[bytes] = set()
        async for held in self._holding(worker, limit):
            ids |= held
            if len(ids) >= limit:
                break
        chosen = sorted(ids)[:limit]
        return [
            job_of(row) for part in parts(chosen) for row in await self.rows(statement, worker=worker, ids=items(part))
        ]

    async def _holding(self, worker: WorkerId, wanted: int) -> AsyncIterator[set[bytes]]:
        """The ids of what a worker holds, some at a time. Drops claims of which nothing is left."""
        rows = min(_MOST_ROWS, math.ceil(wanted / _MOST_IDS))
        last: Row = (bytes(_ID), -1)
        while True:
            claims = await self.rows("claims_of", worker=worker, id=last[0], fence=last[1], limit=rows)
            found = await self._held_of([(worker, job_id) for claim in claims for job_id in _split(claim[2])])
            held = {job_id for _, job_id in found}
            self._forget_claims([(worker, *claim[:2]) for claim in claims if held.isdisjoint(_split(claim[2]))])
            if held:
                yield held
            if len(claims) < rows:
                return
            last = claims[-1]

    async def _held_of(self, claimed: Collection[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        """Those of these (worker, id) of which the worker still holds the job."""
        ids = sorted({job_id for _, job_id in claimed})
        found = {(row[2], row[0]) for part in parts(ids) for row in await self.rows("still_held", ids=items(part))}
        return found.intersection(claimed)

    def _forget_claims(self, names: Sequence[Row]) -> None:
        if names:
            self.defer("forget_claims", rows=self.table(_NAMES, names))


def _split(ids: bytes) -> Iterable[bytes]:
    return [ids[start : start + _ID] for start in range(0, len(ids), _ID)]
