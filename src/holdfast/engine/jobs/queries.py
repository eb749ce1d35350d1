"""Looking at jobs: reads only, each on one snapshot and with a bounded amount of work."""

from typing import NamedTuple

from holdfast.errors import NotFound
from holdfast.model.ids import JobId
from holdfast.model.job import DeadGroup, Found, Job, JobFilter, Page
from holdfast.model.state import Status
from holdfast.model.step import Step
from holdfast.model.time import Instant
from holdfast.store.port.store import Store, Tx

WALK = 10_000
"""How many rows of each table one page may cost."""

COUNTED = 1_000
"""Up to how many dead letters of a group are counted."""


class Detail(NamedTuple):
    """A job and all that is known of it."""

    job: Job
    steps: list[Step]
    lease_until: Instant | None


class Group(NamedTuple):
    """Dead letters with the same error, with the newest and the oldest of them."""

    group: DeadGroup
    newest: Job
    oldest: Job


async def one(store: Store, job_id: JobId, *, tenant: str | None) -> Job:
    """A job of this tenant (None: of any), wherever it stands; a foreign one is as unknown as one that never was."""
    return own(await store.single(lambda tx: tx.get([job_id])), job_id, tenant)


async def detail(store: Store, job_id: JobId, *, tenant: str | None) -> Detail:
    """As `one`, with what it recorded and until when its holder's lease runs."""

    async def work(tx: Tx) -> Detail:
        job = own(await tx.get([job_id]), job_id, tenant)
        running = job.status is Status.RUNNING and job.worker is not None
        lease = await tx.lease_until(job.worker) if running and job.worker is not None else None
        return Detail(job, await tx.steps(job_id), lease)

    return await store.read(work)


async def page(store: Store, where: JobFilter, at: Page) -> Found:
    """Jobs, newest first: a page may be short, even empty, though there is more."""
    return await store.read(lambda tx: tx.seek(where, at, most=WALK))


async def dead_groups(store: Store, tenant: str | None, after: tuple[str, str] | None, *, limit: int) -> list[Group]:
    """Dead letters by tenant and error; each group counted up to a thousand and one."""

    async def work(tx: Tx) -> list[Group]:
        groups = await tx.dead_groups(tenant, after, limit=limit, most=COUNTED + 1)
        shown = {each for group in groups for each in (group.newest, group.oldest)}
        jobs = {job.id: job for job in await tx.get(shown)}
        return [Group(group, jobs[group.newest], jobs[group.oldest]) for group in groups]

    return await store.read(work)


def own(found: list[Job], job_id: JobId, tenant: str | None) -> Job:
    """The job that was found, if it is this tenant's (None: anybody's); raises `NotFound`."""
    if not found or (tenant is not None and found[0].tenant != tenant):
        raise NotFound.job(job_id)
    return found[0]
