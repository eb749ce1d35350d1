"""Jobs that workers hold on MySQL and MariaDB, found through the table holdfast_claims."""

import math
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from uuid import UUID

from holdfast.model.ids import JobId, WorkerId
from holdfast.model.job import Job
from holdfast.model.time import Instant, seconds
from holdfast.store.mysql.literal import items
from holdfast.store.mysql.transitions import TransitionsTx, parts
from holdfast.store.sql.codec import Row, job_of

_ID_BYTES = 16
_MAX_IDS_PER_ROW = 250
"""Maximum number of jobs per row; the database would store more ids on a separate page."""

_READ_BATCH_SIZE = 8
"""Number of claim rows read at a time."""

_MIN_CHECK_INTERVAL = seconds(2)
_MAX_DOUBLINGS = 8
_CLAIM_KEY = ("of_worker", "of_id", "of_fence")


class HeldJobsTx(TransitionsTx):
    """Held jobs within a transaction."""

    def record_claim(self, worker: WorkerId, at: Instant, claimed: Sequence[tuple[bytes, int]]) -> str:
        """Return the statement that records which jobs a worker claimed, by id and fence."""
        batches = [claimed[start : start + _MAX_IDS_PER_ROW] for start in range(0, len(claimed), _MAX_IDS_PER_ROW)]
        rows = [
            (worker, *batch[0], at + _MIN_CHECK_INTERVAL, b"".join([job_id for job_id, _ in batch]))
            for batch in batches
        ]
        return self.text("record_claim", rows=self.table((*_CLAIM_KEY, "next_check", "claimed"), rows))

    async def held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        return await self._lock("held_by_ids", worker, limit)

    async def lock_held_by(self, worker: WorkerId, limit: int) -> list[Job]:
        return await self._lock("lock_held_by_ids", worker, limit)

    async def held_attempts(self, worker: WorkerId, limit: int) -> list[tuple[JobId, int]]:
        found: list[tuple[JobId, int]] = []
        last: Row = (bytes(_ID_BYTES), -1)
        while len(found) < limit:
            claims = await self.rows("claims_of", worker=worker, id=last[0], fence=last[1], limit=_READ_BATCH_SIZE)
            ids = sorted({job_id for claim in claims for job_id in _split(claim[2])})
            for part in parts(ids):
                rows = await self.rows("still_held", ids=items(part))
                found += [(JobId(UUID(bytes=row[0])), row[1]) for row in rows if row[2] == worker]
            if len(claims) < _READ_BATCH_SIZE:
                break
            last = claims[-1]
        return list(dict.fromkeys(found))[:limit]

    async def orphans(self, limit: int) -> list[Job]:
        found: list[Job] = []
        for row in await self.rows("orphaned_claims", limit=limit):
            if len(found) < limit:
                found += await self.lock_held_by(WorkerId(row[0]), limit - len(found))
        return found

    async def depart(self, worker: WorkerId) -> bool:
        return not await self._holds(worker) and await self.remove_workers("depart", [worker]) == 1

    async def delete_expired(self, workers: Collection[WorkerId]) -> int:
        return await self.remove_workers(
            "delete_expired", [worker for worker in sorted(workers) if not await self._holds(worker)]
        )

    async def compact_claims(self, limit: int) -> int:
        """Remove jobs from claims that their workers no longer hold; return how many were checked."""
        claims = await self.rows("lock_claims", limit=limit)
        held = await self._held_of([(claim[0], job_id) for claim in claims for job_id in _split(claim[4])])
        gone: list[Row] = []
        kept: list[Row] = []
        for worker, first, fence, earlier_checks, ids in claims:
            left = b"".join([job_id for job_id in _split(ids) if (worker, job_id) in held])
            checks = min(earlier_checks + 1, _MAX_DOUBLINGS)
            if left:
                kept.append((worker, first, fence, left, checks, _MIN_CHECK_INTERVAL << checks))
            else:
                gone.append((worker, first, fence))
        self._delete_claims(gone)
        if kept:
            self.defer("keep_claims", rows=self.table((*_CLAIM_KEY, "held", "next_checks", "delay"), kept))
        return len(claims)

    async def _holds(self, worker: WorkerId) -> bool:
        # Lock by a separate statement, so that the next ones see the jobs of a claim that was in progress.
        await self.rows("lock_worker", worker=worker)
        async for _ in self._holding(worker, 1):
            return True
        return False

    async def _lock(self, statement: str, worker: WorkerId, limit: int) -> list[Job]:
        """Lock the jobs that a worker holds, in the order of their ids."""
        ids: set[bytes] = set()
        async for held in self._holding(worker, limit):
            ids |= held
            if len(ids) >= limit:
                break
        chosen = sorted(ids)[:limit]
        return [
            job_of(row) for part in parts(chosen) for row in await self.rows(statement, worker=worker, ids=items(part))
        ]

    async def _holding(self, worker: WorkerId, limit: int) -> AsyncIterator[set[bytes]]:
        """Yield the ids of jobs that a worker holds, in batches; delete claims without held jobs."""
        rows = min(_READ_BATCH_SIZE, math.ceil(limit / _MAX_IDS_PER_ROW))
        last: Row = (bytes(_ID_BYTES), -1)
        while True:
            claims = await self.rows("claims_of", worker=worker, id=last[0], fence=last[1], limit=rows)
            found = await self._held_of([(worker, job_id) for claim in claims for job_id in _split(claim[2])])
            held = {job_id for _, job_id in found}
            self._delete_claims([(worker, *claim[:2]) for claim in claims if held.isdisjoint(_split(claim[2]))])
            if held:
                yield held
            if len(claims) < rows:
                return
            last = claims[-1]

    async def _held_of(self, claimed: Collection[tuple[int, bytes]]) -> set[tuple[int, bytes]]:
        """Return those of these (worker, id) pairs in which the worker still holds the job."""
        ids = sorted({job_id for _, job_id in claimed})
        found = {(row[2], row[0]) for part in parts(ids) for row in await self.rows("still_held", ids=items(part))}
        return found.intersection(claimed)

    def _delete_claims(self, names: Sequence[Row]) -> None:
        if names:
            self.defer("delete_claims", rows=self.table(_CLAIM_KEY, names))


def _split(ids: bytes) -> Iterable[bytes]:
    return [ids[start : start + _ID_BYTES] for start in range(0, len(ids), _ID_BYTES)]
