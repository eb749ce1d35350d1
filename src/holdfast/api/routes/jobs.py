"""Routes to submit, read, cancel, retry and delete jobs."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from holdfast.api.http import HttpResponse, Stream
from holdfast.api.offload import call_with_rows
from holdfast.api.render.jobs import render_bulk_result, render_job
from holdfast.api.routing import MAX_BATCH_BODY_BYTES, Route, RouteCall
from holdfast.engine.submitting.receipts import Receipt, initial_state
from holdfast.errors import Invalid
from holdfast.model.access import Scope
from holdfast.model.decoded_job import Action
from holdfast.model.explanation import Explanation
from holdfast.model.ids import JobId, ids_with_prefix
from holdfast.model.job import JobSpec, Page
from holdfast.model.time import rfc3339
from holdfast.policy.access import acting_tenant, visible_tenant
from holdfast.policy.actions import allowed_actions, bulk_filter
from holdfast.policy.tenant_bounds import JobNames
from holdfast.wire import codec
from holdfast.wire.job_detail import (
    AttemptPage,
    AttemptQuery,
    JobDetail,
    StepPage,
    StepQuery,
    attempt_page,
    job_detail,
    read_step_cursor,
    step_page,
)
from holdfast.wire.types import (
    BatchOut,
    BulkCancel,
    BulkOut,
    BulkRequest,
    Cursor,
    FilterShape,
    IdPrefix,
    JobOut,
    JobPage,
    Limit,
    ReceiptOut,
    RequestBody,
    SubmitBatch,
    SubmitJob,
)

KEY = {"Idempotency-Key": "Requests with the same key create one job, for as long as keys are kept."}
TENANT = {"Holdfast-Tenant": "For administrators: act on behalf of this tenant."}
REPLAYED = {"Idempotent-Replayed": "`true` if an earlier request with this key created the job."}


class JobQuery(FilterShape):
    """Filter and page of a job list."""

    id_prefix: IdPrefix | None = None
    cursor: Cursor | None = None
    limit: Limit = 50


class CancelRequest(RequestBody):
    """Reason for a cancellation, kept with the job."""

    reason: Annotated[str, Meta(max_length=500)] = ""


async def submit_job(call: RouteCall[SubmitJob, None]) -> HttpResponse | Stream:
    """Submit one job; it is durable when the response arrives."""
    spec = codec.spec_of(call.body, tenant=tenant_of(call), idempotency_key=call.request.header("idempotency-key"))
    job, replayed = await submit(call, spec)
    return HttpResponse(job, 200, {"idempotent-replayed": "true"}) if replayed else HttpResponse(job, 201)


async def submit(call: RouteCall[Any, Any], spec: JobSpec) -> tuple[JobOut, bool]:
    """Submit a job; return it, or the earlier one and True if the submission is replayed."""
    call.service.tenants.admit_jobs(spec.tenant, [JobNames(spec.queue, spec.type)])
    job, receipt, earlier = await call.service.engine.jobs.submit_and_get(spec)
    if earlier is not None:
        return render_job(earlier, call.caller), True
    status, due = initial_state(job, receipt.created_at)
    allowed = allowed_actions(call.caller, status)
    return codec.job_made(job, status=status, due=due, created_at=receipt.created_at, actions=allowed), False


async def submit_batch(call: RouteCall[SubmitBatch, None]) -> HttpResponse | Stream:
    """Submit many jobs: all of them, or none and an error for every invalid one."""
    specs = await call_with_rows(len(call.body.jobs), codec.batch_specs, call.body, tenant=tenant_of(call))
    receipts = await submit_specs(call, specs)
    return HttpResponse(BatchOut([ReceiptOut(str(r.id), rfc3339(r.created_at), r.replayed) for r in receipts]), 201)


async def submit_specs(call: RouteCall[Any, Any], specs: Sequence[JobSpec | Invalid]) -> list[Receipt]:
    """Submit the jobs of a batch, all or none."""
    names = [JobNames(spec.queue, spec.type) for spec in specs if isinstance(spec, JobSpec)]
    if len(names) == len(specs):  # others are rejected as a whole
        call.service.tenants.admit_jobs(tenant_of(call), names)
    return await call.service.engine.jobs.submit_many(specs, from_json=True)


async def list_jobs(call: RouteCall[None, JobQuery]) -> HttpResponse | Stream:
    """List jobs, newest first."""
    query = call.query
    where = codec.filter_of(query, tenant=visible_tenant(call.caller, query.tenant))
    if query.id_prefix is not None:
        where = replace(where, ids=ids_with_prefix(query.id_prefix))
    page = await call.service.engine.jobs.search(where, Page(query.limit, codec.read_cursor(query.cursor)))
    return HttpResponse(JobPage([render_job(job, call.caller) for job in page.jobs], codec.cursor_of(page.cursor)))


async def get_job(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Return a job with its attempts, steps and lease."""
    return await job_response(call, codec.job_id(call.path["id"]))


async def list_attempts(call: RouteCall[None, AttemptQuery]) -> HttpResponse | Stream:
    """List the attempts of a job that did not succeed or logged something, newest first."""
    job = await call.service.engine.jobs.get(codec.job_id(call.path["id"]), tenant=visible_tenant(call.caller, None))
    return HttpResponse(attempt_page(job, call.query.cursor))


async def list_steps(call: RouteCall[None, StepQuery]) -> HttpResponse | Stream:
    """List the recorded steps of a job, by key."""
    steps, more = await call.service.engine.jobs.step_page(
        codec.job_id(call.path["id"]),
        tenant=visible_tenant(call.caller, None),
        after=read_step_cursor(call.query.cursor),
    )
    return HttpResponse(step_page(steps, more=more))


async def explain_job(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Explain why a job is or is not running."""
    tenant = visible_tenant(call.caller, None)
    return HttpResponse(await call.service.engine.jobs.explain(codec.job_id(call.path["id"]), tenant=tenant))


async def cancel_job(call: RouteCall[CancelRequest, None]) -> HttpResponse | Stream:
    """Cancel a job, even a running one."""
    await act(call, "cancel", reason=call.body.reason)
    return await job_response(call, codec.job_id(call.path["id"]))


async def retry_job(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Run a job now: restart a dead or cancelled one, run a waiting one early."""
    await act(call, "retry")
    return await job_response(call, codec.job_id(call.path["id"]))


async def delete_job(call: RouteCall[None, None]) -> HttpResponse | Stream:
    """Delete a job and its records; its idempotency key stays in use until it expires."""
    await act(call, "delete")
    return HttpResponse(None, 204)


async def cancel_jobs(call: RouteCall[BulkCancel, None]) -> HttpResponse | Stream:
    """Cancel all matching jobs that are not finished."""
    return await act_on_all(call, "cancel", reason=call.body.reason)


async def retry_jobs(call: RouteCall[BulkRequest, None]) -> HttpResponse | Stream:
    """Retry all matching jobs; without a status in the filter, the dead ones."""
    return await act_on_all(call, "retry")


def tenant_of(call: RouteCall[Any, Any]) -> str:
    """Return the tenant that the request acts for."""
    return acting_tenant(call.caller, call.request.header("holdfast-tenant"))


async def act(call: RouteCall[Any, Any], action: Action, *, reason: str = "") -> None:
    """Apply an action to the job in the path."""
    await call.service.engine.jobs.apply(
        action,
        codec.job_id(call.path["id"]),
        tenant=visible_tenant(call.caller, None),
        reason=reason or f"by {call.caller.name}",
    )


async def act_on_all(call: RouteCall[Any, Any], action: Action, *, reason: str = "") -> HttpResponse | Stream:
    """Apply an action to all jobs that match the filter in the body."""
    body: BulkRequest = call.body
    where = codec.filter_of(body.filter, tenant=visible_tenant(call.caller, body.filter.tenant))
    result = await call.service.engine.jobs.apply_to_matching(
        action,
        bulk_filter(where, action, everything=body.all),
        before=codec.read_cursor(body.cursor),
        reason=reason or f"by {call.caller.name}",
        dry_run=body.dry_run,
    )
    return HttpResponse(render_bulk_result(result, dry_run=body.dry_run))


async def job_response(call: RouteCall[Any, Any], job_id: JobId) -> HttpResponse:
    """Return a job with its details.

    Raises:
        NotFound: For another tenant's job too, so ids cannot be probed.
    """
    detail = await call.service.engine.jobs.detail(job_id, tenant=visible_tenant(call.caller, None))
    allowed = allowed_actions(call.caller, detail.job.status)
    steps, more_steps = detail.steps
    return HttpResponse(
        job_detail(detail.job, actions=allowed, steps=steps, more_steps=more_steps, lease_until=detail.lease_until)
    )


ROUTES = (
    Route(
        "POST", "/v1/jobs", Scope.SUBMIT, submit_job, "Submit a job", {201: JobOut, 200: JobOut}, SubmitJob,
        headers=KEY | TENANT, response_headers={200: REPLAYED}, error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/jobs/batch", Scope.SUBMIT, submit_batch, "Submit up to 10,000 jobs, all or none", {201: BatchOut},
        SubmitBatch, body_limit=MAX_BATCH_BODY_BYTES, headers=TENANT, error_statuses=(409,),
    ),
    Route(
        "GET", "/v1/jobs", Scope.READ, list_jobs, "List jobs, newest first; a page may be short, so follow next_cursor",
        {200: JobPage}, query=JobQuery, large_page=True,
    ),
    Route("POST", "/v1/jobs/cancel", Scope.CANCEL, cancel_jobs, "Cancel all matching jobs", {200: BulkOut}, BulkCancel),
    Route(
        "POST", "/v1/jobs/retry", Scope.CANCEL, retry_jobs, "Retry all matching jobs; without a status, the dead ones",
        {200: BulkOut}, BulkRequest,
    ),
    Route(
        "GET", "/v1/jobs/{id}", Scope.READ, get_job, "Get a job with its attempts, steps and lease", {200: JobDetail}
    ),
    Route(
        "GET", "/v1/jobs/{id}/attempts", Scope.READ, list_attempts,
        "List the attempts of a job that failed or logged, newest first", {200: AttemptPage}, query=AttemptQuery,
        large_page=True,
    ),
    Route(
        "GET", "/v1/jobs/{id}/steps", Scope.READ, list_steps, "List the recorded steps of a job, by key",
        {200: StepPage}, query=StepQuery, large_page=True,
    ),
    Route(
        "GET", "/v1/jobs/{id}/explain", Scope.READ, explain_job,
        "Explain why a job is or is not running, and when it may start", {200: Explanation},
    ),
    Route(
        "DELETE", "/v1/jobs/{id}", Scope.CANCEL, delete_job,
        "Delete a job that is not running; its idempotency key stays in use until it expires", {204: None},
        error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/jobs/{id}/cancel", Scope.CANCEL, cancel_job, "Cancel a job, even a running one", {200: JobDetail},
        CancelRequest, error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/jobs/{id}/retry", Scope.CANCEL, retry_job, "Run a job now", {200: JobDetail},
        error_statuses=(409,),
    ),
)  # fmt: skip
