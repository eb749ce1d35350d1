"""Inserts of jobs and their keys on PostgreSQL."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.model import change_log
from holdfast.model.job import NewJob
from holdfast.model.lane import Lane, LaneReady
from holdfast.model.state import AWAITING_KEY, Status
from holdfast.model.time import Instant
from holdfast.store.sql.codec import Row, is_due, retry_bytes, tags_bytes
from holdfast.store.sql.tx import KeyOwner, KeyRequest, SqlTx

_READY = Status.READY.code

_SEPARATOR = chr(31)
"""Separates names in the texts of `insert_plain`."""


class Inserts(SqlTx):
    """Inserts of jobs and keys within a transaction."""

    @abstractmethod
    async def run_appending(
        self, name: str, columns: dict[str, Any], correct: Callable[[Sequence[Row]], bytes | None]
    ) -> Sequence[Row]:
        """Run a statement that appends to the change log itself; see `TransitionsTx.run_appending`."""

    async def insert_rows(self, jobs: Sequence[NewJob]) -> Instant:
        """Insert all jobs and return the insert time."""
        rows = await (self._insert_plain(jobs) if all(map(_is_plain, jobs)) else self._insert_any(jobs))
        return self._note_ready(rows)

    async def _insert_plain(self, jobs: Sequence[NewJob]) -> Sequence[Row]:
        specs = [job.spec for job in jobs]
        return await self.rows(
            "insert_plain",
            ids=",".join([f"{job.id.int:032x}" for job in jobs]),
            tenants=_SEPARATOR.join([spec.tenant for spec in specs]),
            queues=_SEPARATOR.join([spec.queue for spec in specs]),
            types=_SEPARATOR.join([spec.type for spec in specs]),
            payloads=[job.payload for job in jobs],
            priorities=",".join([str(spec.priority) for spec in specs]),
            max_attempts=",".join([str(job.max_attempts) for job in jobs]),
            costs=",".join([str(spec.cost) for spec in specs]),
            body=change_log.encode_submission(jobs, [False] * len(jobs)).decode(),
        )

    async def _insert_any(self, jobs: Sequence[NewJob]) -> Sequence[Row]:
        specs = [job.spec for job in jobs]
        later = [spec.scheduled_at is not None or bool(spec.delay) for spec in specs]
        columns = {
            "ids": [job.id for job in jobs],
            "tenants": [spec.tenant for spec in specs],
            "queues": [spec.queue for spec in specs],
            "types": [spec.type for spec in specs],
            "payloads": [job.payload for job in jobs],
            "priorities": [spec.priority for spec in specs],
            "max_attempts": [job.max_attempts for job in jobs],
            "costs": [spec.cost for spec in specs],
            "scheduled": [spec.scheduled_at for spec in specs],
            "delays": [spec.delay for spec in specs],
            "timeouts": [spec.timeout for spec in specs],
            "deadlines": [spec.deadline for spec in specs],
            "retries": [retry_bytes(job) for job in jobs],
            "tags": [tags_bytes(job) for job in jobs],
            "concurrency_keys": [spec.concurrency_key for spec in specs],
            "idempotency_keys": [spec.idempotency_key for spec in specs],
            "later": sum(later),
            "body": change_log.encode_submission(jobs, later).decode(),
        }

        def correct(groups: Sequence[Row]) -> bytes | None:
            """Return the entry if scheduled jobs were already due by the database clock."""
            if sum(later) == 0 or not any(group[3] in (_READY, AWAITING_KEY) for group in groups):
                return None
            at = groups[0][5]
            waiting = [expected and not is_due(job, at) for job, expected in zip(jobs, later, strict=True)]
            return None if waiting == later else change_log.encode_submission(jobs, waiting)

        return await self.run_appending("insert", columns, correct)

    def _note_ready(self, groups: Sequence[Row]) -> Instant:
        for queue, tenant, priority, status, seq, _ in groups:
            if status == _READY:
                self.ready_lanes.append(LaneReady(Lane(queue, tenant, priority), seq))
        return Instant(groups[0][5])

    async def take_keys(self, requests: Sequence[KeyRequest]) -> None:
        """Insert the keys that do not exist."""
        await self.rows("take_keys", **_key_columns(requests))

    async def lock_keys(self, requests: Sequence[KeyRequest]) -> dict[tuple[str, int, str], KeyOwner]:
        """Lock these keys and return their owners."""
        rows = await self.rows("lock_keys", **_key_columns(requests))
        return {(tenant, kind, key): KeyOwner(*owner) for tenant, kind, key, *owner in rows}

    async def reassign_keys(self, requests: Sequence[KeyRequest]) -> None:
        """Reassign these locked keys to other jobs."""
        await self.rows("reassign_keys", **_key_columns(requests))


def _is_plain(job: NewJob) -> bool:
    spec = job.spec
    return not (
        spec.scheduled_at is not None
        or spec.delay is not None
        or spec.timeout is not None
        or spec.deadline is not None
        or spec.retry is not None
        or spec.tags
        or spec.concurrency_key is not None
        or spec.idempotency_key is not None
    )


def _key_columns(requests: Sequence[KeyRequest]) -> dict[str, list[Any]]:
    names = ("tenants", "kinds", "keys", "ids", "fingerprints", "spans")
    return dict(zip(names, (list(column) for column in zip(*requests, strict=True)), strict=True))
