"""Submit jobs, look at them, act on them."""

from typing import Annotated, Any

from msgspec import Meta

from holdfast.api.http import Answer, Stream
from holdfast.api.table import BATCH_LIMIT, Call, Route
from holdfast.errors import Invalid, InvalidBatch
from holdfast.model.access import Scope
from holdfast.model.job import Job, JobFilter, Page
from holdfast.model.state import Status
from holdfast.model.time import rfc3339
from holdfast.policy.access import acting_tenant, seen_tenant
from holdfast.policy.lifecycle import actions
from holdfast.wire import codec
from holdfast.wire.types import (
    BatchOut,
    JobOut,
    JobPage,
    Name,
    Query,
    ReceiptOut,
    Request,
    StatusName,
    SubmitBatch,
    SubmitJob,
)

KEY = {"Idempotency-Key": "The same key is the same job, for as long as keys are kept."}
TENANT = {"Holdfast-Tenant": "For administrators: act for this tenant."}
REPLAYED = {"Idempotent-Replayed": "`true`: an earlier request with this key made the job."}


class JobQuery(Query):
    """Which jobs, and where to go on."""

    status: StatusName | None = None
    type: Name | None = None
    queue: Name | None = None
    tenant: Name | None = None
    cursor: Annotated[str, Meta(max_length=64)] | None = None
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class CancelRequest(Request):
    """Why, for whoever looks at the job later."""

    reason: Annotated[str, Meta(max_length=500)] = ""


async def submit_job(call: Call[SubmitJob, None]) -> Answer | Stream:
    """Submit one job; durable when answered."""
    spec = codec.spec_of(call.body, tenant=tenant_of(call), idempotency_key=call.request.header("idempotency-key"))
    job, repeated = await call.service.engine.submit_job(spec)
    return Answer(shown(job), 200, {"idempotent-replayed": "true"}) if repeated else Answer(shown(job), 201)


async def submit_batch(call: Call[SubmitBatch, None]) -> Answer | Stream:
    """Submit many jobs: all, or none and a list of every one at fault."""
    tenant = tenant_of(call)
    specs, faults = [], {}
    for index, asked in enumerate(call.body.jobs):
        try:
            specs.append(codec.spec_of(asked, tenant=tenant, idempotency_key=asked.idempotency_key))
        except Invalid as fault:
            faults[index] = fault
    if faults:
        raise InvalidBatch(faults)
    receipts = await call.service.engine.submit_many(specs)
    return Answer(BatchOut([ReceiptOut(str(r.id), rfc3339(r.created_at), r.repeated) for r in receipts]), 201)


async def list_jobs(call: Call[None, JobQuery]) -> Answer | Stream:
    """Jobs, newest first, page by page."""
    asked = call.query
    where = JobFilter(
        tenant=seen_tenant(call.caller, asked.tenant),
        status=None if asked.status is None else Status(asked.status),
        queue=asked.queue,
        type=asked.type,
    )
    jobs = await call.service.engine.find(where, Page(asked.limit, codec.read_cursor(asked.cursor)))
    following = codec.cursor_of(jobs[-1].id) if len(jobs) == asked.limit else None
    return Answer(JobPage([shown(job) for job in jobs], following))


async def get_job(call: Call[None, None]) -> Answer | Stream:
    """One job."""
    return Answer(shown(await own_job(call)))


async def cancel_job(call: Call[CancelRequest, None]) -> Answer | Stream:
    """Cancel a job, also one that runs."""
    job = await own_job(call)
    reason = call.body.reason or f"by {call.caller.name}"
    await call.service.engine.cancel([job.id], reason=reason)
    return Answer(shown(await own_job(call)))


async def retry_job(call: Call[None, None]) -> Answer | Stream:
    """Have a job run now: a dead or cancelled one anew, a waiting one ahead of its time."""
    job = await own_job(call)
    await call.service.engine.retry([job.id])
    return Answer(shown(await own_job(call)))


def tenant_of(call: Call[Any, Any]) -> str:
    """For whom a request acts."""
    return acting_tenant(call.caller, call.request.header("holdfast-tenant"))


async def own_job(call: Call[Any, Any]) -> Job:
    """The job that a path names; a foreign one is as unknown as one that never was."""
    wanted = codec.job_id(call.path["id"])
    found = await call.service.engine.get(wanted)
    if not call.caller.is_admin and found.tenant != call.caller.tenant:
        raise codec.not_found(wanted)
    return found


def shown(job: Job) -> JobOut:
    """A job as it is answered."""
    return codec.job_out(job, actions=actions(job.status))


ROUTES = (
    Route(
        "POST", "/v1/jobs", Scope.SUBMIT, submit_job, "Submit a job", {201: JobOut, 200: JobOut}, SubmitJob,
        headers=KEY | TENANT, answer_headers={200: REPLAYED}, refusals=(409,),
    ),
    Route(
        "POST", "/v1/jobs/batch", Scope.SUBMIT, submit_batch, "Submit up to 10,000 jobs: all, or none", {201: BatchOut},
        SubmitBatch, body_limit=BATCH_LIMIT, headers=TENANT, refusals=(409,),
    ),
    Route("GET", "/v1/jobs", Scope.READ, list_jobs, "Jobs, newest first", {200: JobPage}, query=JobQuery),
    Route("GET", "/v1/jobs/{id}", Scope.READ, get_job, "One job", {200: JobOut}),
    Route(
        "POST", "/v1/jobs/{id}/cancel", Scope.CANCEL, cancel_job, "Cancel a job, also one that runs", {200: JobOut},
        CancelRequest, refusals=(409,),
    ),
    Route(
        "POST", "/v1/jobs/{id}/retry", Scope.CANCEL, retry_job, "Have a job run now", {200: JobOut}, refusals=(409,)
    ),
)  # fmt: skip
