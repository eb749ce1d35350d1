"""Job search with a bounded amount of work, for all dialects.

Each table is scanned by id, newest first, along an index that includes the tenant if the filter names one. Conditions
that no index covers are checked row by row, up to a maximum number of rows; then the search returns where to resume.

Unfinished jobs have no index by tenant and id, because every job would pay for it. If they are few, they are collected
from the existing indexes; if they are many, the scan finds them soon.
"""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import msgspec

from holdfast.model import change_log
from holdfast.model.ids import JobId, first_job_id
from holdfast.model.job import DeadGroup, Job, JobFilter, Page, SearchPage, merge_pages
from holdfast.model.state import AWAITING_KEY, TERMINAL, Status
from holdfast.model.time import Instant
from holdfast.store.sql.codec import job_of
from holdfast.store.sql.runner import StatementRunner

MAX_COLLECTED = 5_000
"""Maximum number of unfinished jobs to collect; beyond it the table is scanned."""

MAX_COLLECTED_RUNNING = 20_000
"""Maximum number of running jobs to collect, of all tenants; the workers bound their number."""

SCAN_FIRST_ROWS = 2_000
"""Number of newest rows to scan first: enough for a page unless matches are rare."""

SCAN_BATCH_SIZE = 10_000
"""Number of rows that `find` scans at a time."""

_GET_BATCH_SIZE = 200
_MAX_CLOCK_DRIFT_MS = 600_000
"""Maximum difference between the time in a job id and the database's time at its insert."""

_MAX_JOB_ID = JobId(UUID(int=(1 << 128) - 1))
_AFTER_ALL_NAMES = "~"
"""Sorts after every name."""

_ENCODE = msgspec.json.Encoder().encode
_TAGS = msgspec.json.Decoder(list[str])


class SqlJobSearch(StatementRunner):
    """Search and removal of jobs within a transaction: a part of `JobRepository`."""

    changed: bool

    @abstractmethod
    async def get(self, ids: Collection[JobId]) -> list[Job]:
        """Return the jobs that exist, in no order."""

    @abstractmethod
    async def remove_rows(self, table: str, jobs: Sequence[Job]) -> set[JobId]:
        """Delete the rows of a table that are unchanged since they were read; return their ids."""

    @abstractmethod
    async def grant_key_slots(self, keys: Collection[tuple[str, str]]) -> int:
        """Make the next jobs that wait for these keys ready; return how many."""

    @abstractmethod
    async def remove_steps(self, ids: Collection[JobId]) -> None:
        """Delete the steps of these jobs."""

    async def find(self, where: JobFilter, page: Page) -> list[Job]:
        jobs: list[Job] = []
        before = page.before
        while len(jobs) < page.limit:
            found = await self.seek(where, Page(page.limit - len(jobs), before), max_rows=SCAN_BATCH_SIZE)
            jobs += found.jobs
            if found.cursor is None:
                break
            before = found.cursor
        return jobs

    async def seek(self, where: JobFilter, page: Page, *, max_rows: int) -> SearchPage:
        page, floor = _within(where, page)
        parts = [await self._search(table, where, page, floor, max_rows) for table in _tables(where)]
        return merge_pages(parts, page.limit)

    async def remove(self, jobs: Sequence[Job]) -> set[JobId]:
        removed: set[JobId] = set()
        for table in ("live", "dead", "history"):
            if stored := [job for job in jobs if table in _tables(JobFilter(status=job.status))]:
                removed |= await self.remove_rows(table, stored)
        if removed:
            self.changed = True
            await self.remove_steps(removed)
            await self.append_change(change_log.encode_deletions([job for job in jobs if job.id in removed]))
            await self.grant_key_slots(
                {
                    (job.tenant, job.concurrency_key)
                    for job in jobs
                    if job.id in removed and job.concurrency_key is not None and not job.status.terminal
                }
            )
        return removed

    async def dead_groups(
        self, tenant: str | None, after: tuple[str, str] | None, *, limit: int, max_count: int
    ) -> list[DeadGroup]:
        first, fingerprint = after or (tenant or "", "")
        if tenant is not None and first != tenant:
            first, fingerprint = tenant, ""
        rows = await self.rows(
            "dead_groups",
            tenant_after=first,
            fingerprint_after=fingerprint,
            tenant_last=tenant or _AFTER_ALL_NAMES,
            limit=limit,
        )
        groups = []
        for oldest, newest, owner, error in rows:
            (size,) = await self.rows("dead_group_size", tenant=owner, fingerprint=error, max_count=max_count)
            groups.append(DeadGroup(_id(oldest), _id(newest), owner, error, size[0]))
        return groups

    async def lease_until(self, worker: int) -> Instant | None:
        rows = await self.rows("lease_until", worker=worker)
        return Instant(rows[0][0]) if rows else None

    async def collect_if_few(self, status: Status | None, tenant: str | None) -> set[JobId] | None:
        """Return a superset of the unfinished jobs of a status or tenant; None if too many."""
        found: set[JobId] = set()
        for public_status, code in _UNFINISHED:
            if status not in (None, public_status):
                continue
            name, parameters = _collecting(code, tenant)
            limit = MAX_COLLECTED_RUNNING if public_status is Status.RUNNING else MAX_COLLECTED
            rows = await self.rows(name, limit=limit, **parameters)
            found |= {_id(row[0]) for row in rows if public_status is not Status.RUNNING or tenant in (None, row[1])}
            if len(rows) >= limit or (public_status is not Status.RUNNING and len(found) >= MAX_COLLECTED):
                return None
        return found

    async def _search(self, table: str, where: JobFilter, page: Page, floor: JobId, max_rows: int) -> SearchPage:
        if where.ids is not None:  # the index of ids leads to them
            return await self._scan(table, where, page, floor, max_rows)
        # Frequent matches fill a page from the newest rows, so these are scanned first. Unfinished jobs other than
        # ready ones are usually few: collecting them is faster than scanning for them.
        rare = table == "live" and where.status not in (None, Status.READY)
        if max_rows > SCAN_FIRST_ROWS and not rare and _has_unindexed_condition(where, _statements(table, where)[1]):
            newest = await self._scan(table, where, page, floor, SCAN_FIRST_ROWS)
            if newest.cursor is None or len(newest.jobs) >= page.limit:
                return newest
        if table == "live" and (where.tenant is not None or where.status is not None):
            few = await self.collect_if_few(where.status, where.tenant)
            if few is not None:
                return await self._filter(few, where, page, floor, max_rows)
        return await self._scan(table, where, page, floor, max_rows)

    async def _scan(self, table: str, where: JobFilter, page: Page, floor: JobId, max_rows: int) -> SearchPage:
        """Scan the newest `max_rows` rows along the best index."""
        suffix, indexed = _statements(table, where)
        parameters = {"tenant": where.tenant, "fingerprint": where.error, "before": page.before}
        bottom: JobId | None = None
        if _has_unindexed_condition(where, indexed):
            rows = await self.rows(f"window_{suffix}", **parameters, floor=floor, skip=max_rows - 1)
            bottom = _id(rows[0][0]) if rows else None
        rows = await self.rows(
            f"find_{suffix}", **parameters, **_conditions(where), floor=bottom or floor, limit=page.limit + 1
        )
        jobs = [job_of(row) for row in rows]
        if len(jobs) > page.limit:
            jobs.pop()
            bottom = jobs[-1].id
        return SearchPage([job for job in jobs if _has_tag(job, where.tag)], bottom)

    async def _filter(
        self, ids: Collection[JobId], where: JobFilter, page: Page, floor: JobId, max_rows: int
    ) -> SearchPage:
        """Read these jobs, newest first and in batches, and return those that match."""
        left = sorted((job_id for job_id in ids if floor <= job_id < (page.before or _MAX_JOB_ID)), reverse=True)
        found: list[Job] = []
        for start in range(0, len(left), _GET_BATCH_SIZE):
            batch = left[start : start + _GET_BATCH_SIZE]
            if start >= max_rows:
                return SearchPage(found, left[start - 1])
            jobs = [job for job in await self.get(batch) if _matches(job, where)]
            found += sorted(jobs, key=lambda job: job.id, reverse=True)
            if len(found) > page.limit:
                return SearchPage(found[: page.limit], found[page.limit - 1].id)
        return SearchPage(found, None)


_UNFINISHED = (
    *(
        (status, status.code)
        for status in (Status.READY, Status.RUNNING, Status.SCHEDULED, Status.RETRYING, Status.BLOCKED)
    ),
    (Status.READY, AWAITING_KEY),
)
"""Statuses of unfinished jobs, each with a stored code."""


def _collecting(code: int, tenant: str | None) -> tuple[str, dict[str, Any]]:
    """Return the statement that collects jobs with a stored code, and its parameters."""
    owner = {} if tenant is None else {"tenant": tenant}
    if code == Status.RUNNING.code:
        return "running_ids", {}
    if code == Status.READY.code:
        return ("ready_ids_of" if owner else "ready_ids"), owner
    return ("waiting_ids_of" if owner else "waiting_ids"), owner | {"status": code}


def _within(where: JobFilter, page: Page) -> tuple[Page, JobId]:
    """Return the page with an upper bound, and the lowest id; ids contain the creation time.

    The bounds cover `where.ids` exactly, and the creation times approximately.
    """
    before, floor = page.before or _MAX_JOB_ID, first_job_id(0)
    if where.created_before is not None:
        before = min(before, first_job_id(where.created_before // 1_000 + _MAX_CLOCK_DRIFT_MS))
    if where.created_after is not None:
        floor = first_job_id(where.created_after // 1_000 - _MAX_CLOCK_DRIFT_MS)
    if where.ids is not None:
        before = min(before, JobId(UUID(int=min(where.ids.last.int + 1, _MAX_JOB_ID.int))))
        floor = max(floor, where.ids.first)
    return Page(page.limit, before), floor


def _tables(where: JobFilter) -> tuple[str, ...]:
    """Return the tables that can hold matching jobs."""
    match where.status:
        case None:
            tables: tuple[str, ...] = ("live", "dead", "history")
        case Status.DEAD:
            tables = ("dead",)
        case Status.SUCCEEDED | Status.CANCELLED:
            tables = ("history",)
        case _:
            tables = ("live",)
    if where.error is not None:
        tables = tuple(table for table in tables if table == "dead")
    if where.finished is not None:
        tables = tuple(table for table in tables if (table != "live") is where.finished)
    return tables


def _statements(table: str, where: JobFilter) -> tuple[str, frozenset[str]]:
    """Return the suffix of the statements for a table, and the fields that their index covers."""
    if table == "live" or where.tenant is None:
        return table, frozenset()
    if where.error is not None:
        return "dead_alike", frozenset({"tenant", "error"})
    return ("dead_of" if table == "dead" else "history_of"), frozenset({"tenant"})


def _has_unindexed_condition(where: JobFilter, indexed: frozenset[str]) -> bool:
    fields = {name for name in where.__struct_fields__ if getattr(where, name) is not None} - {"finished", "ids"}
    if where.status is Status.DEAD:  # has its own table
        fields.discard("status")
    return bool(fields - indexed)


def _conditions(where: JobFilter) -> dict[str, Any]:
    return {
        "queue": where.queue,
        "type": where.type,
        "status": None if where.status is None else where.status.code,
        "tag": None if where.tag is None else _ENCODE(where.tag),
        "after": where.created_after,
        "until": where.created_before,
    }


def _matches(job: Job, where: JobFilter) -> bool:
    """Return True if an unfinished job matches the filter."""
    return (
        job.status not in TERMINAL
        and where.tenant in (None, job.tenant)
        and where.status in (None, job.status)
        and where.queue in (None, job.queue)
        and where.type in (None, job.type)
        and (where.created_after is None or job.created_at > where.created_after)
        and (where.created_before is None or job.created_at < where.created_before)
        and _has_tag(job, where.tag)
    )


def _has_tag(job: Job, tag: str | None) -> bool:
    """Return True if the job has the tag; the SQL condition is only a substring match."""
    return tag is None or (job.tags is not None and tag in _TAGS.decode(job.tags))


def _id(stored: UUID | bytes) -> JobId:
    return JobId(UUID(bytes=stored) if isinstance(stored, bytes) else stored)
