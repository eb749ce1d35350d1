"""How jobs and their keys go into PostgreSQL."""

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

_BETWEEN = chr(31)
"""Between names where several are one text: see `insert_plain`."""


class Inserts(SqlTx):
    """Inserts of jobs and keys within a transaction."""

    @abstractmethod
    async def run_appending(
        self, name: str, columns: dict[str, Any], truth: Callable[[Sequence[Row]], bytes | None]
    ) -> Sequence[Row]:
        """Run a statement that writes its row of the feed itself if all goes as expected; see `TransitionsTx`."""

    async def insert_rows(self, jobs: Sequence[NewJob]) -> Instant:
        """Insert all jobs and return the insert time."""
        rows = await (self._insert_plain(jobs) if all(map(_is_plain, jobs)) else self._insert_any(jobs))
        return self._inserted(rows)

    async def _insert_plain(self, jobs: Sequence[NewJob]) -> Sequence[Row]:
        return await self.rows(
            "insert_plain",
            ids=",".join([f"{job.id.int:032x}" for job in jobs]),
            tenants=_BETWEEN.join([job.tenant for job in jobs]),
            queues=_BETWEEN.join([job.queue for job in jobs]),
            types=_BETWEEN.join([job.type for job in jobs]),
            payloads=[job.payload for job in jobs],
            priorities=",".join([str(job.priority) for job in jobs]),
            max_attempts=",".join([str(job.max_attempts) for job in jobs]),
            costs=",".join([str(job.cost) for job in jobs]),
            body=change_log.of_new(jobs, [False] * len(jobs)).decode(),
        )

    async def _insert_any(self, jobs: Sequence[NewJob]) -> Sequence[Row]:
        later = [job.scheduled_at is not None or bool(job.delay) for job in jobs]
        columns = {
            "ids": [job.id for job in jobs],
            "tenants": [job.tenant for job in jobs],
            "queues": [job.queue for job in jobs],
            "types": [job.type for job in jobs],
            "payloads": [job.payload for job in jobs],
            "priorities": [job.priority for job in jobs],
            "max_attempts": [job.max_attempts for job in jobs],
            "costs": [job.cost for job in jobs],
            "scheduled": [job.scheduled_at for job in jobs],
            "delays": [job.delay for job in jobs],
            "timeouts": [job.timeout for job in jobs],
            "deadlines": [job.deadline for job in jobs],
            "retries": [retry_bytes(job) for job in jobs],
            "tags": [tags_bytes(job) for job in jobs],
            "concurrency_keys": [job.concurrency_key for job in jobs],
            "idempotency_keys": [job.idempotency_key for job in jobs],
            "later": sum(later),
            "body": change_log.of_new(jobs, later).decode(),
        }

        def truth(groups: Sequence[Row]) -> bytes | None:
            """Those with a time of their own may have been due already: the database's clock decided."""
            if sum(later) == 0 or not any(group[3] in (_READY, AWAITING_KEY) for group in groups):
                return None
            at = groups[0][5]
            waiting = [each and not is_due(job, at) for job, each in zip(jobs, later, strict=True)]
            return None if waiting == later else change_log.of_new(jobs, waiting)

        return await self.run_appending("insert", columns, truth)

    def _inserted(self, groups: Sequence[Row]) -> Instant:
        for queue, tenant, priority, status, seq, _ in groups:
            if status == _READY:
                self.ready_lanes.append(LaneReady(Lane(queue, tenant, priority), seq))
        return Instant(groups[0][5])

    async def take_keys(self, claims: Sequence[KeyRequest]) -> None:
        """Insert the keys that do not exist."""
        await self.rows("take_keys", **_key_columns(claims))

    async def lock_keys(self, claims: Sequence[KeyRequest]) -> dict[tuple[str, int, str], KeyOwner]:
        """Lock these keys and return their owners."""
        rows = await self.rows("lock_keys", **_key_columns(claims))
        return {(tenant, kind, key): KeyOwner(*owner) for tenant, kind, key, *owner in rows}

    async def retake_keys(self, claims: Sequence[KeyRequest]) -> None:
        """Reassign these locked keys to other jobs."""
        await self.rows("retake_keys", **_key_columns(claims))


def _is_plain(job: NewJob) -> bool:
    return not (
        job.scheduled_at is not None
        or job.delay is not None
        or job.timeout is not None
        or job.deadline is not None
        or job.retry is not None
        or job.tags
        or job.concurrency_key is not None
        or job.idempotency_key is not None
    )


def _key_columns(claims: Sequence[KeyRequest]) -> dict[str, list[Any]]:
    names = ("tenants", "kinds", "keys", "ids", "fingerprints", "spans")
    return dict(zip(names, (list(column) for column in zip(*claims, strict=True)), strict=True))
