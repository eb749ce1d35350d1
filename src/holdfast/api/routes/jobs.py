"""Submit jobs, look at them, act on them."""

from typing import Annotated, Any

from msgspec import Meta

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.routing import MAX_BATCH_BODY_BYTES, Call, Route
from holdfast.engine.jobs.actions import BulkResult
from holdfast.engine.submitting.receipts import initial_state
from holdfast.model.access import Caller, Scope
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId
from holdfast.model.job import Job, Page
from holdfast.model.time import rfc3339
from holdfast.policy.access import acting_tenant, visible_tenant
from holdfast.policy.actions import allowed_actions, bulk_filter
from holdfast.policy.lifecycle import Action
from holdfast.wire import codec
from holdfast.wire.types import (
    BatchOut,
    BulkCancel,
    BulkOut,
    BulkRequest,
    Cursor,
    FilterShape,
    JobDetail,
    JobOut,
    JobPage,
    Limit,
    ReceiptOut,
    RequestBody,
    SubmitBatch,
    SubmitJob,
)

KEY = {"Idempotency-Key": "The same key is the same job, for as long as keys are kept."}
TENANT = {"Holdfast-Tenant": "For administrators: act for this tenant."}
REPLAYED = {"Idempotent-Replayed": "`true`: an earlier request with this key made the job."}


class JobQuery(FilterShape):
    """Which jobs, and where to go on."""

    cursor: Cursor | None = None
    limit: Limit = 50


class CancelRequest(RequestBody):
    """Why, for whoever looks at the job later."""

    reason: Annotated[str, Meta(max_length=500)] = ""


async def submit_job(call: Call[SubmitJob, None]) -> HttpResponse | Stream:
    """Submit one job; durable when answered."""
    spec = codec.spec_of(call.body, tenant=tenant_of(call), idempotency_key=call.request.header("idempotency-key"))
    job, receipt, earlier = await call.service.engine.jobs.submit_and_get(spec)
    if earlier is not None:
        return HttpResponse(render_job(earlier, call.caller), 200, {"idempotent-replayed": "true"})
    status, due = initial_state(job, receipt.created_at)
    allowed = allowed_actions(call.caller, status)
    made = codec.job_made(job, status=status, due=due, created_at=receipt.created_at, actions=allowed)
    return HttpResponse(made, 201)


async def submit_batch(call: Call[SubmitBatch, None]) -> HttpResponse | Stream:
    """Submit many jobs: all, or none and a list of every one at fault."""
    receipts = await call.service.engine.jobs.submit_many(
        codec.batch_specs(call.body, tenant=tenant_of(call)), from_json=True
    )
    return HttpResponse(BatchOut([ReceiptOut(str(r.id), rfc3339(r.created_at), r.replayed) for r in receipts]), 201)


async def list_jobs(call: Call[None, JobQuery]) -> HttpResponse | Stream:
    """Jobs, newest first, page by page."""
    where = codec.filter_of(call.query, tenant=visible_tenant(call.caller, call.query.tenant))
    found = await call.service.engine.jobs.search(where, Page(call.query.limit, codec.read_cursor(call.query.cursor)))
    return HttpResponse(JobPage([render_job(job, call.caller) for job in found.jobs], codec.cursor_of(found.cursor)))


async def get_job(call: Call[None, None]) -> HttpResponse | Stream:
    """One job and all that is known of it."""
    return await job_response(call, codec.job_id(call.path["id"]))


async def explain_job(call: Call[None, None]) -> HttpResponse | Stream:
    """Why a job is (not) running."""
    tenant = visible_tenant(call.caller, None)
    return HttpResponse(await call.service.engine.jobs.explain(codec.job_id(call.path["id"]), tenant=tenant))


async def cancel_job(call: Call[CancelRequest, None]) -> HttpResponse | Stream:
    """Cancel a job, also one that runs."""
    await act(call, "cancel", reason=call.body.reason)
    return await job_response(call, codec.job_id(call.path["id"]))


async def retry_job(call: Call[None, None]) -> HttpResponse | Stream:
    """Have a job run now: a dead or cancelled one anew, a waiting one ahead of its time."""
    await act(call, "retry")
    return await job_response(call, codec.job_id(call.path["id"]))


async def delete_job(call: Call[None, None]) -> HttpResponse | Stream:
    """Delete a job and what it recorded. Its idempotency key stays taken for its term."""
    await act(call, "delete")
    return HttpResponse(None, 204)


async def cancel_jobs(call: Call[BulkCancel, None]) -> HttpResponse | Stream:
    """Cancel all that match and are not finished."""
    return await act_on_all(call, "cancel", reason=call.body.reason)


async def retry_jobs(call: Call[BulkRequest, None]) -> HttpResponse | Stream:
    """Run all that match; without a status in the filter, the dead ones."""
    return await act_on_all(call, "retry")


def tenant_of(call: Call[Any, Any]) -> str:
    """For whom a request acts."""
    return acting_tenant(call.caller, call.request.header("holdfast-tenant"))


async def act(call: Call[Any, Any], action: Action, *, reason: str = "") -> None:
    """Do it to the job that the path names."""
    await call.service.engine.jobs.apply(
        action,
        codec.job_id(call.path["id"]),
        tenant=visible_tenant(call.caller, None),
        reason=reason or f"by {call.caller.name}",
    )


async def act_on_all(call: Call[Any, Any], action: Action, *, reason: str = "") -> HttpResponse | Stream:
    """Do it to all jobs that the body's filter finds."""
    asked: BulkRequest = call.body
    where = codec.filter_of(asked.filter, tenant=visible_tenant(call.caller, asked.filter.tenant))
    done = await call.service.engine.jobs.apply_to_matching(
        action,
        bulk_filter(where, action, everything=asked.all),
        before=codec.read_cursor(asked.cursor),
        reason=reason or f"by {call.caller.name}",
        dry_run=asked.dry_run,
    )
    return HttpResponse(bulk_out(done, dry_run=asked.dry_run))


def bulk_out(done: BulkResult, *, dry_run: bool) -> BulkOut:
    """What became of an action on many jobs, as it is answered."""
    return BulkOut(done.matched, done.changed, dry_run, codec.cursor_of(done.cursor))


async def job_response(call: Call[Any, Any], job_id: JobId) -> HttpResponse:
    """A job with all that is known of it; a foreign one is as unknown as one that never was."""
    found = await call.service.engine.jobs.detail(job_id, tenant=visible_tenant(call.caller, None))
    allowed = allowed_actions(call.caller, found.job.status)
    return HttpResponse(codec.job_detail(found.job, actions=allowed, steps=found.steps, lease_until=found.lease_until))


def render_job(job: Job, caller: Caller) -> JobOut:
    """A job as it is answered."""
    return codec.job_out(job, actions=allowed_actions(caller, job.status))


ROUTES = (
    Route(
        "POST", "/v1/jobs", Scope.SUBMIT, submit_job, "Submit a job", {201: JobOut, 200: JobOut}, SubmitJob,
        headers=KEY | TENANT, answer_headers={200: REPLAYED}, refusals=(409,),
    ),
    Route(
        "POST", "/v1/jobs/batch", Scope.SUBMIT, submit_batch, "Submit up to 10,000 jobs: all, or none", {201: BatchOut},
        SubmitBatch, body_limit=MAX_BATCH_BODY_BYTES, headers=TENANT, refusals=(409,),
    ),
    Route(
        "GET", "/v1/jobs", Scope.READ, list_jobs, "Jobs, newest first; a page may be short: go on by next_cursor",
        {200: JobPage}, query=JobQuery,
    ),
    Route(
        "POST", "/v1/jobs/cancel", Scope.CANCEL, cancel_jobs, "Cancel all that match", {200: BulkOut}, BulkCancel
    ),
    Route(
        "POST", "/v1/jobs/retry", Scope.CANCEL, retry_jobs, "Run all that match; if no status is given, the dead ones",
        {200: BulkOut}, BulkRequest,
    ),
    Route("GET", "/v1/jobs/{id}", Scope.READ, get_job, "One job and all that is known of it", {200: JobDetail}),
    Route(
        "GET", "/v1/jobs/{id}/explain", Scope.READ, explain_job, "Why a job is (not) running, and when it may start",
        {200: Explanation},
    ),
    Route(
        "DELETE", "/v1/jobs/{id}", Scope.CANCEL, delete_job,
        "Delete a job that does not run; its idempotency key stays taken for its term", {204: None}, refusals=(409,),
    ),
    Route(
        "POST", "/v1/jobs/{id}/cancel", Scope.CANCEL, cancel_job, "Cancel a job, also one that runs", {200: JobDetail},
        CancelRequest, refusals=(409,),
    ),
    Route(
        "POST", "/v1/jobs/{id}/retry", Scope.CANCEL, retry_job, "Have a job run now", {200: JobDetail}, refusals=(409,)
    ),
)  # fmt: skip
