"""Looking for jobs on any of the databases, with a bounded amount of work.

Every table is walked by the newest ids first, along an index that has the tenant in it where one is asked for. What no
index can tell is tested row by row, for so many rows and no more: then a look ends, and says where to go on.

Unfinished jobs have no index of tenants and ids, which every job would pay for. They are gathered from the indexes that
are there if they are few; if they are many, the walk meets them soon.
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import msgspec

from holdfast.model import change_log
from holdfast.model.ids import JobId, first_job_id
from holdfast.model.job import DeadGroup, Job, JobFilter, Page, SearchPage
from holdfast.model.state import AWAITING_KEY, TERMINAL, Status
from holdfast.model.time import Instant
from holdfast.store.sql.codec import Row, job_of

MAX_COLLECTED = 5_000
"""Up to how many unfinished jobs of a tenant or a status are gathered rather than walked to."""

MAX_COLLECTED_RUNNING = 20_000
"""Up to how many running jobs are gathered, of all tenants: their number is bounded by the workers'."""

SCAN_FIRST_ROWS = 2_000
"""How many of the newest rows are looked at first, for whatever is not rare."""

SCAN_BATCH_SIZE = 10_000
"""How many rows `find` walks at a time."""

_AT_ONCE = 200
_SLACK_MS = 600_000
"""By how much the time in a job's id may differ from when it was inserted: nodes' clocks drift a little."""

_LAST = JobId(UUID(int=(1 << 128) - 1))
_BEYOND_NAMES = "~"
"""Sorts behind every name."""

_ENCODE = msgspec.json.Encoder().encode
_TAGS = msgspec.json.Decoder(list[str])


class SqlJobSearch(ABC):
    """The part of a transaction that looks for jobs. See `holdfast.store.port.store.Jobs`."""

    changed: bool

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""

    @abstractmethod
    async def append_change(self, body: bytes) -> None:
        """Append an entry to the change log."""

    @abstractmethod
    async def get(self, ids: Collection[JobId]) -> list[Job]:
        """Return the jobs that exist, in no order."""

    @abstractmethod
    async def remove_rows(self, place: str, jobs: Sequence[Job]) -> set[JobId]:
        """Delete the rows of a table that are unchanged since they were read; return their ids."""

    @abstractmethod
    async def pass_turns(self, keys: Collection[tuple[str, str]]) -> int:
        """Make the next jobs that wait for these keys ready; return how many."""

    @abstractmethod
    async def remove_steps(self, ids: Collection[JobId]) -> None:
        """Delete the steps of these jobs."""

    async def find(self, where: JobFilter, page: Page) -> list[Job]:
        jobs: list[Job] = []
        before = page.before
        while len(jobs) < page.limit:
            found = await self.seek(where, Page(page.limit - len(jobs), before), most=SCAN_BATCH_SIZE)
            jobs += found.jobs
            if found.rest is None:
                break
            before = found.rest
        return jobs

    async def seek(self, where: JobFilter, page: Page, *, most: int) -> SearchPage:
        page, floor = _within(where, page)
        parts = [await self._look(place, where, page, floor, most) for place in _places(where)]
        # Below the highest place where a look ended, another table may have more.
        rests = [part.rest for part in parts if part.rest is not None]
        reached = max(rests, default=None)
        newest_first = heapq.merge(*(part.jobs for part in parts), key=lambda job: job.id, reverse=True)
        jobs = [job for job in newest_first if reached is None or job.id >= reached]
        if len(jobs) > page.limit:
            return SearchPage(jobs[: page.limit], jobs[page.limit - 1].id)
        return SearchPage(jobs, reached)

    async def remove(self, jobs: Sequence[Job]) -> set[JobId]:
        removed: set[JobId] = set()
        for place in ("live", "dead", "history"):
            if here := [job for job in jobs if place in _places(JobFilter(status=job.status))]:
                removed |= await self.remove_rows(place, here)
        if removed:
            self.changed = True
            await self.remove_steps(removed)
            await self.append_change(change_log.of_deleted([job for job in jobs if job.id in removed]))
            await self.pass_turns(
                {
                    (job.tenant, job.concurrency_key)
                    for job in jobs
                    if job.id in removed and job.concurrency_key is not None and not job.status.terminal
                }
            )
        return removed

    async def dead_groups(
        self, tenant: str | None, after: tuple[str, str] | None, *, limit: int, most: int
    ) -> list[DeadGroup]:
        first, fingerprint = after or (tenant or "", "")
        if tenant is not None and first != tenant:
            first, fingerprint = tenant, ""
        rows = await self.rows(
            "dead_groups",
            tenant_after=first,
            fingerprint_after=fingerprint,
            tenant_last=tenant or _BEYOND_NAMES,
            limit=limit,
        )
        groups = []
        for oldest, newest, owner, error in rows:
            (size,) = await self.rows("dead_group_size", tenant=owner, fingerprint=error, most=most)
            groups.append(DeadGroup(_id(oldest), _id(newest), owner, error, size[0]))
        return groups

    async def lease_until(self, worker: int) -> Instant | None:
        rows = await self.rows("lease_until", worker=worker)
        return Instant(rows[0][0]) if rows else None

    async def collect_if_few(self, status: Status | None, tenant: str | None) -> set[JobId] | None:
        """Return a superset of the unfinished jobs of a status or tenant; None if there are too many."""
        found: set[JobId] = set()
        for each, code in _UNFINISHED:
            if status not in (None, each):
                continue
            name, asked = _gathering(code, tenant)
            most = MAX_COLLECTED_RUNNING if each is Status.RUNNING else MAX_COLLECTED
            rows = await self.rows(name, limit=most, **asked)
            found |= {_id(row[0]) for row in rows if each is not Status.RUNNING or tenant in (None, row[1])}
            if len(rows) >= most or (each is not Status.RUNNING and len(found) >= MAX_COLLECTED):
                return None
        return found

    async def _look(self, place: str, where: JobFilter, page: Page, floor: JobId, most: int) -> SearchPage:
        # What is not rare fills a page from the newest rows: they are looked at before the many. Of what is unfinished
        # only ready jobs are many: others are gathered sooner than walked to.
        rare = place == "live" and where.status not in (None, Status.READY)
        if most > SCAN_FIRST_ROWS and not rare and _asks_more_than(where, _way(place, where)[1]):
            near = await self._walk(place, where, page, floor, SCAN_FIRST_ROWS)
            if near.rest is None or len(near.jobs) >= page.limit:
                return near
        if place == "live" and (where.tenant is not None or where.status is not None):
            few = await self.collect_if_few(where.status, where.tenant)
            if few is not None:
                return await self._among(few, where, page, floor, most)
        return await self._walk(place, where, page, floor, most)

    async def _walk(self, place: str, where: JobFilter, page: Page, floor: JobId, most: int) -> SearchPage:
        """Look at the newest `most` rows along the index that fits best."""
        way, known = _way(place, where)
        asked = {"tenant": where.tenant, "fingerprint": where.error, "before": page.before}
        bottom: JobId | None = None
        if _asks_more_than(where, known):
            rows = await self.rows(f"window_{way}", **asked, floor=floor, skip=most - 1)
            bottom = _id(rows[0][0]) if rows else None
        rows = await self.rows(
            f"find_{way}", **asked, **_conditions(where), floor=bottom or floor, limit=page.limit + 1
        )
        jobs = [job_of(row) for row in rows]
        if len(jobs) > page.limit:
            jobs.pop()
            bottom = jobs[-1].id
        return SearchPage([job for job in jobs if _has_tag(job, where.tag)], bottom)

    async def _among(self, ids: Collection[JobId], where: JobFilter, page: Page, floor: JobId, most: int) -> SearchPage:
        """Look at these, newest first, a handful at a time."""
        left = sorted((each for each in ids if floor <= each < (page.before or _LAST)), reverse=True)
        found: list[Job] = []
        for start in range(0, len(left), _AT_ONCE):
            lot = left[start : start + _AT_ONCE]
            if start >= most:
                return SearchPage(found, left[start - 1])
            jobs = [job for job in await self.get(lot) if _fits(job, where)]
            found += sorted(jobs, key=lambda job: job.id, reverse=True)
            if len(found) > page.limit:
                return SearchPage(found[: page.limit], found[page.limit - 1].id)
        return SearchPage(found, None)


_UNFINISHED = (
    *((each, each.code) for each in (Status.READY, Status.RUNNING, Status.SCHEDULED, Status.RETRYING, Status.BLOCKED)),
    (Status.READY, AWAITING_KEY),
)
"""Each status with the codes it is stored by."""


def _gathering(code: int, tenant: str | None) -> tuple[str, dict[str, Any]]:
    """The statement that gathers unfinished jobs of this stored status, and what it asks for."""
    of = {} if tenant is None else {"tenant": tenant}
    if code == Status.RUNNING.code:
        return "running_ids", {}
    if code == Status.READY.code:
        return ("ready_ids_of" if of else "ready_ids"), of
    return ("waiting_ids_of" if of else "waiting_ids"), of | {"status": code}


def _within(where: JobFilter, page: Page) -> tuple[Page, JobId]:
    """The page with an end above, and the id at which it ends below: an id has the time in it, almost."""
    before, floor = page.before or _LAST, first_job_id(0)
    if where.created_before is not None:
        before = min(before, first_job_id(where.created_before // 1_000 + _SLACK_MS))
    if where.created_after is not None:
        floor = first_job_id(where.created_after // 1_000 - _SLACK_MS)
    return Page(page.limit, before), floor


def _places(where: JobFilter) -> tuple[str, ...]:
    """Which tables can hold what is asked for."""
    match where.status:
        case None:
            places: tuple[str, ...] = ("live", "dead", "history")
        case Status.DEAD:
            places = ("dead",)
        case Status.SUCCEEDED | Status.CANCELLED:
            places = ("history",)
        case _:
            places = ("live",)
    if where.error is not None:
        places = tuple(place for place in places if place == "dead")
    if where.finished is not None:
        places = tuple(place for place in places if (place != "live") is where.finished)
    return places


def _way(place: str, where: JobFilter) -> tuple[str, frozenset[str]]:
    """The statements for a table and this filter, and which fields of it their index knows."""
    if place == "live" or where.tenant is None:
        return place, frozenset()
    if where.error is not None:
        return "dead_alike", frozenset({"tenant", "error"})
    return ("dead_of" if place == "dead" else "history_of"), frozenset({"tenant"})


def _asks_more_than(where: JobFilter, known: frozenset[str]) -> bool:
    asked = {name for name in where.__struct_fields__ if getattr(where, name) is not None} - {"finished"}
    if where.status is Status.DEAD:  # a table of its own
        asked.discard("status")
    return bool(asked - known)


def _conditions(where: JobFilter) -> dict[str, Any]:
    return {
        "queue": where.queue,
        "type": where.type,
        "status": None if where.status is None else where.status.code,
        "tag": None if where.tag is None else _ENCODE(where.tag),
        "after": where.created_after,
        "until": where.created_before,
    }


def _fits(job: Job, where: JobFilter) -> bool:
    """Whether an unfinished job is one of those asked for."""
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
    """Exactly: the statement only looked for the tag as it is written, which may also stand between two others."""
    return tag is None or (job.tags is not None and tag in _TAGS.decode(job.tags))


def _id(stored: UUID | bytes) -> JobId:
    return JobId(UUID(bytes=stored) if isinstance(stored, bytes) else stored)
