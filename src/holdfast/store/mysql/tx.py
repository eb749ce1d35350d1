"""Transaction on MySQL and MariaDB: inserts, reads and the rest of the port."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any
from uuid import UUID

from holdfast.model import change_log
from holdfast.model.change_log import ChangeEntry
from holdfast.model.ids import JobId
from holdfast.model.job import HeldJob, Job, NewJob
from holdfast.model.lane import Lane
from holdfast.model.state import STATUS_OF_CODE, Status
from holdfast.model.step import Step
from holdfast.model.time import Instant
from holdfast.store.codes import Parked
from holdfast.store.mysql.held_jobs import HeldJobsTx
from holdfast.store.mysql.literal import Sql, items, values
from holdfast.store.mysql.rows import new_row
from holdfast.store.mysql.transitions import parts
from holdfast.store.port.change_log import Rollup
from holdfast.store.port.store import LockedUsage
from holdfast.store.sql import job_search
from holdfast.store.sql.access import tenant_of
from holdfast.store.sql.change_log import entry_of
from holdfast.store.sql.codec import is_due, job_of
from holdfast.store.sql.steps import step_parameters
from holdfast.store.sql.tx import KeyOwner, KeyRequest

_MAX_INSERT_BYTES = 4 * 1024 * 1024
"""Maximum size of the rows of one INSERT, if the server accepts messages of that size."""


class MysqlTx(HeldJobsTx):
    """Transaction on MySQL or MariaDB."""

    async def insert_rows(self, jobs: Sequence[NewJob]) -> Instant:
        """Insert all jobs and return the insert time."""
        rows = [new_row(job, position) for position, job in enumerate(jobs)]
        inserts = [self.text("insert", rows=Sql(",".join(part))) for part in self._batches(rows)]
        message = [self.text("next_positions"), *inserts]
        if watched := [(job.id, job.spec.deadline) for job in jobs if job.spec.deadline is not None]:
            columns = ("of_id", "its_deadline")
            message += [self.text("watch_deadlines", rows=self.table(columns, part)) for part in parts(watched)]
        # For jobs with a scheduled time, the result of the insert says which are due.
        statuses_known = all(job.spec.scheduled_at is None for job in jobs)
        if statuses_known:
            message.append(
                self.text(
                    "append_change", body=change_log.encode_submission(jobs, [bool(job.spec.delay) for job in jobs])
                )
            )
        message.append(self.text("read_positions"))
        fits = len(inserts) == 1 and sum(map(len, message)) + len(message) <= self.max_message_bytes
        last = statuses_known and fits and self.alone
        results = await (self.send_and_commit(*message) if last else self.send(*message))
        at, first = results[-1].rows[0]
        if not statuses_known:
            await self.append_change(change_log.encode_submission(jobs, [not is_due(job, at) for job in jobs]))
        self.note_ready(
            (Lane(job.spec.queue, job.spec.tenant, job.spec.priority), first + position)
            for position, job in enumerate(jobs)
            if job.spec.concurrency_key is None and is_due(job, at)
        )
        return Instant(at)

    async def take_keys(self, requests: Sequence[KeyRequest]) -> None:
        """Insert the keys that do not exist."""
        for part in parts(requests):
            self.defer("take_keys", rows=self._keys(part))

    async def lock_keys(self, requests: Sequence[KeyRequest]) -> dict[tuple[str, int, str], KeyOwner]:
        """Lock these keys and return their owners."""
        return {
            (tenant, kind, name.decode()): KeyOwner(JobId(UUID(bytes=job_id)), fingerprint, bool(valid))
            for part in parts(requests)
            for tenant, kind, name, job_id, fingerprint, valid in await self.rows("lock_keys", rows=self._keys(part))
        }

    async def reassign_keys(self, requests: Sequence[KeyRequest]) -> None:
        """Reassign these locked keys to other jobs."""
        for part in parts(requests):
            self.defer("reassign_keys", rows=self._keys(part))

    async def get(self, ids: Collection[JobId]) -> list[Job]:
        return [job_of(row) for part in parts(list(ids)) for row in await self.rows("get", ids=items(part))]

    async def collect_if_few(self, status: Status | None, tenant: str | None) -> set[JobId] | None:
        """Return a superset of the unfinished jobs of a status or tenant; None if too many."""
        if status is Status.RUNNING:
            return await self._claimed_if_few()
        ranges = await self._ranges(status, tenant)
        if ranges is None:
            return None
        found: set[bytes] = set()
        for name, parameters in ranges:
            found |= {row[0] for row in await self.rows(name, limit=job_search.MAX_COLLECTED, **parameters)}
            if len(found) >= job_search.MAX_COLLECTED:
                return None
        return _ids(found)

    async def _claimed_if_few(self) -> set[JobId] | None:
        """Return a superset of the running jobs, from the claims; None if there are too many."""
        claims = await self.rows("claimed_ids", limit=job_search.MAX_COLLECTED_RUNNING)
        found = {ids[start : start + 16] for (ids,) in claims for start in range(0, len(ids), 16)}
        # A job may be in several claims, so that there can be fewer jobs than claims.
        return None if max(len(claims), len(found)) >= job_search.MAX_COLLECTED_RUNNING else _ids(found)

    async def _ranges(self, status: Status | None, tenant: str | None) -> list[tuple[str, dict[str, Any]]] | None:
        """Return statements for the key ranges that hold these jobs; None if there are too many."""
        match status:
            case None:
                sections = [int(parked) for parked in Parked]
            case Status.READY:
                sections = [int(Parked.NOT_PARKED), int(Parked.PARKED_FOR_KEY)]
            case _:
                sections = [int(Parked.PARKED_UNTIL_DUE)]
        if tenant is None:
            return [("live_ids", {"parked": parked}) for parked in sections]
        ranges = await self.rows("live_queues", limit=job_search.MAX_COLLECTED)
        if len(ranges) >= job_search.MAX_COLLECTED:
            return None
        return [
            ("live_ids_of", {"parked": parked, "queue": queue, "tenant": tenant})
            for parked, queue in ranges
            if parked in sections
        ]

    async def remove_rows(self, table: str, jobs: Sequence[Job]) -> set[JobId]:
        """Delete the rows of a table that are unchanged since they were read; return their ids."""
        removed: set[JobId] = set()
        for part in parts(sorted(jobs, key=lambda job: job.id.int)):
            expected = {(job.id.bytes, job.fence, job.status): job.id for job in part}
            rows = await self.rows(f"lock_{table}", ids=items([job.id for job in part]))
            found = [(row[0], row[1], STATUS_OF_CODE[row[2]]) for row in rows]
            ids = [expected[state] for state in found if state in expected]
            if ids:
                self.defer(f"delete_{table}", rows=self.table(("of_id",), [(job_id,) for job_id in ids]))
            removed |= set(ids)
        return removed

    async def remove_steps(self, ids: Collection[JobId]) -> None:
        """Delete the steps of these jobs."""
        for part in parts(sorted(ids)):
            self.defer("remove_steps", rows=self.table(("of_id",), [(job_id,) for job_id in part]))

    async def ready_queues(self, queues: Sequence[str]) -> set[str]:
        if not queues:
            return set()
        rows = self.table(("of_queue",), [(queue,) for queue in queues])
        return {row[0] for row in await self.rows("ready_queues", rows=rows)}

    async def lost(self, held: Collection[HeldJob]) -> set[JobId]:
        lost = {(job.id.bytes, job.fence, job.worker): job.id for job in held}
        for part in parts(list(lost)):
            for row in await self.rows("still_held", ids=items([job_id for job_id, _, _ in part])):
                lost.pop((row[0], row[1], row[2]), None)
        return set(lost.values())

    async def record_step(self, held: HeldJob, step: Step) -> bool:
        if not await self.rows("lock_held", **held._asdict()):
            return False
        self.defer("record_step", key=step.key.encode(), **step_parameters(held, step))
        return True

    async def lock_usage(self, tenant: str) -> LockedUsage:
        # One message, but executed in order: the clock is read after the lock was acquired.
        usage, row, at = await self.send(
            self.text("lock_usage", tenant=tenant), self.text("tenant", name=tenant), self.text("now")
        )
        quotas = tenant_of(row.rows[0]).quotas if row.rows else None
        return LockedUsage(usage.rows[0][1] if usage.rows else None, quotas, Instant(at.rows[0][0]))

    async def save_usage(self, tenant: str, state: bytes) -> None:
        self.defer("save_usage", tenant=tenant, state=state)

    async def queue_backlogs(self, tenant: str, queues: Collection[str], max_count: int) -> dict[str, int]:
        counts: dict[str, int] = {}
        for part in parts(list(queues)):
            texts = [self.text("queue_backlog", tenant=tenant, queue=queue, max_count=max_count) for queue in part]
            results = await self.send(*texts)
            counts |= {queue: result.rows[0][0] for queue, result in zip(part, results, strict=True)}
        return counts

    async def append_change(self, body: bytes) -> None:
        """Append an entry to the change log."""
        self.defer("append_change", body=body)

    async def changes_at(self, numbers: Collection[int]) -> list[ChangeEntry]:
        return [
            entry_of(row) for part in parts(list(numbers)) for row in await self.rows("changes_at", numbers=items(part))
        ]

    async def write_rollups(self, span: int, rollups: Sequence[Rollup]) -> None:
        """Insert or replace these rollups; the span is in seconds."""
        for part in parts(rollups):
            self.defer("save_rollups", rows=values([(span, *rollup) for rollup in part]))

    def _batches(self, rows: Sequence[str]) -> Iterator[list[str]]:
        """Split rows into batches that fit one statement."""
        max_bytes = min(_MAX_INSERT_BYTES, self.max_message_bytes // 2)
        batch: list[str] = []
        size = 0
        for row in rows:
            if batch and size + len(row) > max_bytes:
                yield batch
                batch, size = [], 0
            batch.append(row)
            size += len(row) + 1
        yield batch

    def _keys(self, requests: Sequence[KeyRequest]) -> Sql:
        columns = ("of_tenant", "of_kind", "of_name", "next_job", "next_fingerprint", "span")
        return self.table(columns, [(tenant, kind, key.encode(), *rest) for tenant, kind, key, *rest in requests])


def _ids(stored: Collection[bytes]) -> set[JobId]:
    return {JobId(UUID(bytes=job_id)) for job_id in stored}
