"""Jobs: submit, find, explain, cancel, retry and delete them."""

from collections.abc import Collection, Sequence

from holdfast.engine.changes.analytics import Analytics
from holdfast.engine.jobs import actions, explain, queries, steps
from holdfast.engine.jobs.actions import BulkResult
from holdfast.engine.jobs.queries import GroupPage, JobDetail
from holdfast.engine.sized_pages import SizedPage
from holdfast.engine.submitting.payload_schemas import PayloadSchemas
from holdfast.engine.submitting.receipts import Receipt, SubmitResult
from holdfast.engine.submitting.submitter import Submitter
from holdfast.errors import Invalid
from holdfast.model import decoded_job
from holdfast.model.decoded_job import Action
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId
from holdfast.model.job import Count, Job, JobFilter, JobSpec, Page, SearchPage
from holdfast.model.step import Step
from holdfast.policy import lifecycle
from holdfast.store.port.store import Store


class JobService:
    """Use cases of applications and operators on jobs. Belongs to one event loop."""

    def __init__(self, store: Store, submitter: Submitter, analytics: Analytics) -> None:
        self._store = store
        self._submitter = submitter
        self._analytics = analytics
        self.payload_schemas = PayloadSchemas(store)
        """Check of payloads that were decoded from JSON."""

    async def submit(self, spec: JobSpec) -> Receipt:
        """Submit one job; it is durable when this returns. Concurrent submissions share commits.

        Raises `RateLimited` when the tenant's rate or backlog leaves no room now, `OverLimit` when they never will.
        """
        return (await self._submitter.submit(spec)).receipt

    async def submit_and_get(self, spec: JobSpec) -> SubmitResult:
        """Submit one job decoded from JSON and return it with its receipt.

        A replayed submission returns the earlier job too, or raises `Conflict` if that job no longer exists.
        """
        await self.payload_schemas.check(spec)
        return await self._submitter.submit_and_get(spec)

    async def submit_many(self, specs: Sequence[JobSpec | Invalid], *, from_json: bool = False) -> list[Receipt]:
        """Submit up to 10,000 jobs in one transaction, or none: `InvalidBatch` names every fault.

        A spec that could not be decoded is passed as its `Invalid` error. `from_json`: specs come from JSON.
        """
        checked = await self.payload_schemas.check_many(specs) if from_json else specs
        return await self._submitter.submit_many(checked, from_json=from_json)

    async def get(self, job_id: JobId, *, tenant: str | None = None) -> Job:
        """Return a job in any state, of this tenant (None: of any); raises `NotFound`."""
        return await queries.get_job(self._store, job_id, tenant=tenant)

    async def get_decoded(self, job_id: JobId) -> decoded_job.Job:
        """Return a job as applications see it; raises `NotFound`."""
        stored = await self.get(job_id)
        return decoded_job.decode_job(stored, lifecycle.actions(stored.status))

    async def detail(self, job_id: JobId, *, tenant: str | None) -> JobDetail:
        """Return a job of this tenant (None: of any) with its details; raises `NotFound`."""
        return await queries.detail(self._store, job_id, tenant=tenant)

    async def step_page(self, job_id: JobId, *, tenant: str | None, after: str) -> SizedPage[Step]:
        """Return a page of the recorded steps of a job, by key; raises `NotFound`."""
        return await queries.list_steps(self._store, job_id, tenant=tenant, after=after)

    async def steps(self, job_id: JobId) -> list[Step]:
        """Return the recorded steps of a job."""
        return await steps.recorded(self._store, job_id)

    async def explain(self, job_id: JobId, *, tenant: str | None = None) -> Explanation:
        """Explain why a job is (not) running and when it may; raises `NotFound`."""
        return await explain.explain(self._store, self._analytics, job_id, tenant=tenant)

    async def find(self, where: JobFilter, page: Page = Page()) -> list[Job]:
        """Return jobs, newest first."""
        return await self._store.read(lambda tx: tx.find(where, page))

    async def search(self, where: JobFilter, page: Page = Page()) -> SearchPage:
        """Return jobs, newest first, with bounded work: a page may be short and has a cursor."""
        return await queries.list_jobs(self._store, where, page)

    async def counts(self, where: JobFilter = JobFilter()) -> list[Count]:
        """Return the numbers of unfinished and dead jobs."""
        return await self._store.read(lambda tx: tx.counts(where))

    async def dead_groups(self, tenant: str | None, after: tuple[str, str] | None, *, limit: int) -> GroupPage:
        """Return dead letters grouped by tenant and error."""
        return await queries.dead_groups(self._store, tenant, after, limit=limit)

    async def cancel(self, ids: Collection[JobId], *, reason: str) -> set[JobId]:
        """Cancel unfinished jobs and return their ids."""
        return await actions.cancel(self._store, ids, reason=reason)

    async def retry(self, ids: Collection[JobId]) -> set[JobId]:
        """Make dead, cancelled or waiting jobs ready and return their ids."""
        return await actions.retry(self._store, ids)

    async def apply(self, action: Action, job_id: JobId, *, tenant: str | None, reason: str = "") -> None:
        """Cancel, retry or delete one job; raises `NotFound`, or `Conflict` if its state forbids it."""
        await actions.apply_to_job(self._store, action, job_id, tenant=tenant, reason=reason)

    async def apply_to_matching(
        self, action: Action, where: JobFilter, *, before: JobId | None = None, reason: str = "", dry_run: bool = False
    ) -> BulkResult:
        """Cancel, retry or delete matching jobs, up to the cap of one call; returns a cursor."""
        return await actions.apply_to_matching(
            self._store, action, where, before=before, reason=reason, dry_run=dry_run
        )

    async def apply_to_ids(
        self, action: Action, ids: Collection[JobId], where: JobFilter, *, reason: str = "", dry_run: bool = False
    ) -> BulkResult:
        """Cancel, retry or delete the given jobs that match the filter's tenant and status."""
        return await actions.apply_to_ids(self._store, action, ids, where, reason=reason, dry_run=dry_run)
