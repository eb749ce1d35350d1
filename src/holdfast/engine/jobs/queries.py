"""Read-only queries about jobs, each on one snapshot and with a bounded amount of work."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.engine.sized_pages import MAX_PAGE_BYTES, SizedPage, read_page
from holdfast.errors import NotFound
from holdfast.model.ids import JobId
from holdfast.model.job import DeadGroup, Job, JobFilter, Page, SearchPage
from holdfast.model.state import Status
from holdfast.model.step import Step
from holdfast.model.time import Instant
from holdfast.store.port.store import Store, Tx

MAX_SCANNED_ROWS = 10_000
"""Rows of each table that one page may read."""

_READ_SIZE = 25
"""Jobs that are read at a time, so that a page of large jobs uses little memory."""

_STEPS_READ_SIZE = 10
"""Steps that are read at a time; a result may have as many bytes as a whole page."""

MAX_STEPS = 1_000
"""Maximum number of steps on a page."""

_FIELDS_BYTES = 800
"""Approximate size, in a response, of the fields that `stored_size` does not measure."""

_STEP_FIELDS_BYTES = 400
"""Size of the key and the other fields of a step in a response."""

MAX_COUNTED_JOBS = 1_000
"""Dead letters counted per group; larger groups are reported as having more."""


class JobDetail(NamedTuple):
    """Job with its steps and the expiry of its lease."""

    job: Job
    steps: SizedPage[Step]
    """First page of its steps."""
    lease_until: Instant | None


class DeadLetterGroup(NamedTuple):
    """Dead letters with the same error, with the newest and the oldest of them."""

    group: DeadGroup
    newest: Job
    oldest: Job


class GroupPage(NamedTuple):
    """Page of groups of dead letters."""

    groups: list[DeadLetterGroup]
    more: bool
    """True if there may be more groups after the last one."""


async def get_job(store: Store, job_id: JobId, *, tenant: str | None) -> Job:
    """Return a job in any state, of this tenant or (None) of any.

    Raises `NotFound` for another tenant's job too, so that ids cannot be probed.
    """
    return require_tenant(await store.single(lambda tx: tx.get([job_id])), job_id, tenant)


async def detail(store: Store, job_id: JobId, *, tenant: str | None) -> JobDetail:
    """Return a job like `get_job`, with its first steps and the expiry of its worker's lease."""

    async def work(tx: Tx) -> JobDetail:
        job = require_tenant(await tx.get([job_id]), job_id, tenant)
        running = job.status is Status.RUNNING and job.worker is not None
        lease = await tx.lease_until(job.worker) if running and job.worker is not None else None
        return JobDetail(job, await read_steps(tx, job_id), lease)

    return await store.read(work)


async def list_steps(store: Store, job_id: JobId, *, tenant: str | None, after: str) -> SizedPage[Step]:
    """Return the recorded steps whose keys follow `after`, by key; raises `NotFound`."""

    async def work(tx: Tx) -> SizedPage[Step]:
        require_tenant(await tx.get([job_id]), job_id, tenant)
        return await read_steps(tx, job_id, after)

    return await store.read(work)


async def read_steps(tx: Tx, job_id: JobId, after: str = "") -> SizedPage[Step]:
    """Read a page of the steps of a job, by key.

    Results of transactions are not shown, so they do not count for its size.
    """

    async def read(key: str, count: int) -> list[Step]:
        return await tx.step_page(job_id, key, count)

    def size(step: Step) -> int:
        return _STEP_FIELDS_BYTES + (0 if step.result is None or step.is_transaction else len(step.result))

    return await read_page(read, lambda step: step.key, size, after=after, limit=MAX_STEPS, read_size=_STEPS_READ_SIZE)


async def list_jobs(store: Store, where: JobFilter, page: Page) -> SearchPage:
    """Return a page of jobs, newest first; it may be short or empty even if there are more."""

    async def work(tx: Tx) -> SearchPage:
        jobs: list[Job] = []
        size, before = 0, page.before
        while True:
            count = min(page.limit - len(jobs), _READ_SIZE)
            part = await tx.seek(where, Page(count, before), max_rows=MAX_SCANNED_ROWS)
            for job in part.jobs:
                size += stored_size(job)
                if jobs and size > MAX_PAGE_BYTES:
                    return SearchPage(jobs, jobs[-1].id)
                jobs.append(job)
            if part.cursor is None or len(part.jobs) < count or len(jobs) >= page.limit:
                return SearchPage(jobs, part.cursor)
            before = part.cursor

    return await store.read(work)


async def dead_groups(store: Store, tenant: str | None, after: tuple[str, str] | None, *, limit: int) -> GroupPage:
    """Return dead letters by tenant and error, each group counted up to `MAX_COUNTED_JOBS` + 1."""

    async def work(tx: Tx) -> GroupPage:
        found = await tx.dead_groups(tenant, after, limit=limit, max_count=MAX_COUNTED_JOBS + 1)
        groups: list[DeadLetterGroup] = []
        size = 0
        for start in range(0, len(found), _READ_SIZE):
            part = found[start : start + _READ_SIZE]
            ids = {job_id for group in part for job_id in (group.newest, group.oldest)}
            jobs = {job.id: job for job in await tx.get(ids)}
            for group in part:
                size += stored_size(jobs[group.newest])
                if groups and size > MAX_PAGE_BYTES:
                    return GroupPage(groups, more=True)
                groups.append(DeadLetterGroup(group, jobs[group.newest], jobs[group.oldest]))
        return GroupPage(groups, more=len(found) == limit)

    return await store.read(work)


def stored_size(job: Job) -> int:
    """Return about how many bytes a job adds to a response."""
    parts = (job.payload, job.result, job.attempt_log, job.progress, job.tags)
    return _FIELDS_BYTES + sum(len(part) for part in parts if part is not None)


def count_fitting(jobs: Sequence[Job], max_bytes: int) -> int:
    """Return how many of the jobs fit into a response of this size, at least one."""
    size = 0
    for count, job in enumerate(jobs):
        size += stored_size(job)
        if count and size > max_bytes:
            return count
    return len(jobs)


def require_tenant(found: list[Job], job_id: JobId, tenant: str | None) -> Job:
    """Return the found job if it belongs to this tenant (None: to any); raises `NotFound`."""
    if not found or (tenant is not None and found[0].tenant != tenant):
        raise NotFound.job(job_id)
    return found[0]
