"""Read-only queries about jobs, each on one snapshot and with a bounded amount of work."""

from typing import NamedTuple

from holdfast.errors import NotFound
from holdfast.model.ids import JobId
from holdfast.model.job import DeadGroup, Job, JobFilter, Page, SearchPage
from holdfast.model.state import Status
from holdfast.model.step import Step
from holdfast.model.time import Instant
from holdfast.store.port.store import Store, Tx

MAX_SCANNED_ROWS = 10_000
"""Rows of each table that one page may read."""

MAX_COUNTED_JOBS = 1_000
"""Dead letters counted per group; larger groups are reported as having more."""


class JobDetail(NamedTuple):
    """Job with its steps and the expiry of its lease."""

    job: Job
    steps: list[Step]
    lease_until: Instant | None


class DeadLetterGroup(NamedTuple):
    """Dead letters with the same error, with the newest and the oldest of them."""

    group: DeadGroup
    newest: Job
    oldest: Job


async def get_job(store: Store, job_id: JobId, *, tenant: str | None) -> Job:
    """Return a job in any state, of this tenant or (None) of any.

    Raises `NotFound` for another tenant's job too, so that ids cannot be probed.
    """
    return require_tenant(await store.single(lambda tx: tx.get([job_id])), job_id, tenant)


async def detail(store: Store, job_id: JobId, *, tenant: str | None) -> JobDetail:
    """Return a job like `get_job`, with its recorded steps and the expiry of its worker's lease."""

    async def work(tx: Tx) -> JobDetail:
        job = require_tenant(await tx.get([job_id]), job_id, tenant)
        running = job.status is Status.RUNNING and job.worker is not None
        lease = await tx.lease_until(job.worker) if running and job.worker is not None else None
        return JobDetail(job, await tx.steps(job_id), lease)

    return await store.read(work)


async def list_jobs(store: Store, where: JobFilter, page: Page) -> SearchPage:
    """Return a page of jobs, newest first; it may be short or empty even if there are more."""
    return await store.read(lambda tx: tx.seek(where, page, max_rows=MAX_SCANNED_ROWS))


async def dead_groups(
    store: Store, tenant: str | None, after: tuple[str, str] | None, *, limit: int
) -> list[DeadLetterGroup]:
    """Return dead letters by tenant and error, each group counted up to `MAX_COUNTED_JOBS` + 1."""

    async def work(tx: Tx) -> list[DeadLetterGroup]:
        groups = await tx.dead_groups(tenant, after, limit=limit, max_count=MAX_COUNTED_JOBS + 1)
        ids = {job_id for group in groups for job_id in (group.newest, group.oldest)}
        jobs = {job.id: job for job in await tx.get(ids)}
        return [DeadLetterGroup(group, jobs[group.newest], jobs[group.oldest]) for group in groups]

    return await store.read(work)


def require_tenant(found: list[Job], job_id: JobId, tenant: str | None) -> Job:
    """Return the found job if it belongs to this tenant (None: to any); raises `NotFound`."""
    if not found or (tenant is not None and found[0].tenant != tenant):
        raise NotFound.job(job_id)
    return found[0]
