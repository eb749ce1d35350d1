"""Routes of the worker protocol: claim, renew, settle, and record steps and progress."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast import tasks
from holdfast.api.http import ClientGone, HttpResponse, Stream
from holdfast.api.routes.jobs import TENANT
from holdfast.api.routing import MAX_BATCH_BODY_BYTES, Route, RouteCall
from holdfast.engine.remote_workers import AttemptResult, ClaimRequest
from holdfast.model.access import Scope
from holdfast.model.ids import WorkerId, new_worker_id, worker_name
from holdfast.model.job import HeldJob
from holdfast.model.time import in_seconds, seconds
from holdfast.model.worker import Unresponsiveness
from holdfast.policy.access import visible_tenant
from holdfast.policy.text import sanitize
from holdfast.wire import worker_protocol_codec as wire
from holdfast.wire.job_detail import read_step_cursor, step_cursor
from holdfast.wire.worker_protocol import (
    DEFAULT_LEASE_S,
    About,
    DepartedOut,
    DepartRequest,
    HeldOut,
    HeldPage,
    HeldRequest,
    HeldShape,
    LeaseOut,
    LeaseRequest,
    LostOut,
    LostRequest,
    ProgressRequest,
    RenewRequest,
    SettledOut,
    SettleRequest,
    StepList,
    StepRequest,
    StepsQuery,
)

_MAX_NOTE_CHARS = 500


async def lease_jobs(call: RouteCall[LeaseRequest, None]) -> HttpResponse | Stream:
    """Claim jobs, waiting for them if requested; register the worker if it is new."""
    request = call.body
    by, remote_workers = tenant_of(call), call.service.engine.remote_workers
    lease = wire.lease_of(request.lease)
    wait = request.wait
    if request.worker is None or request.register is not None:
        worker = new_worker_id() if request.worker is None else wire.worker_id(request.worker)
        about = request.register or About()
        about.queues = about.queues or ",".join(request.queues)
        about.types = about.types or request.types
        info = wire.info_of(about, worker, by)
        await call.service.tenants.admit_worker(by)
        await remote_workers.register(info, lease or seconds(DEFAULT_LEASE_S), wire.types_of(about))
        wait = 0.0  # the worker needs its id to renew its lease, so respond at once
    else:
        worker = wire.worker_id(request.worker)
        if lease is not None:
            await remote_workers.renew(worker, lease, by=by)
            wait = min(wait, in_seconds(lease) / 2)
    types = None if request.types is None else frozenset(request.types)
    claim = ClaimRequest(tuple(request.queues), types, request.limit)
    async with _poll_ends(call) as ends:
        jobs, draining = await remote_workers.claim(worker, claim, wait=wait, by=by, ends=ends)
        if ends[0].done():
            raise ClientGone
    return HttpResponse(LeaseOut(worker_name(worker), [wire.leased(job) for job in jobs], draining))


async def renew_lease(call: RouteCall[RenewRequest, None]) -> HttpResponse | Stream:
    """Renew a lease; report jobs that the worker has lost, and whether it should drain."""
    body, by, remote_workers = call.body, tenant_of(call), call.service.engine.remote_workers
    worker, lease = wire.worker_id(body.worker), wire.lease_of(body.lease) or seconds(DEFAULT_LEASE_S)
    unresponsive = None if body.unresponsive is None else Unresponsiveness(seconds(body.unresponsive), body.blocked_by)
    draining = await remote_workers.renew(
        worker, lease, by=by, memory=body.memory, draining=body.draining, unresponsive=unresponsive
    )
    if body.held is not None:
        await call.service.engine.unknown_jobs.compare(worker, _held(worker, body.held), lease)
    return HttpResponse(await _check_held(call, worker, body.held or [], draining=draining))


async def check_lost_jobs(call: RouteCall[LostRequest, None]) -> HttpResponse | Stream:
    """Return which of these jobs the worker has lost, and which are paused."""
    return HttpResponse(await _check_held(call, wire.worker_id(call.body.worker), call.body.held))


async def list_held_jobs(call: RouteCall[HeldRequest, None]) -> HttpResponse | Stream:
    """List the jobs that a worker holds."""
    worker = wire.worker_id(call.body.worker)
    jobs = await call.service.engine.remote_workers.held(worker, call.body.limit, by=tenant_of(call))
    return HttpResponse(HeldPage([HeldOut(str(job.id), job.fence, job.queue, job.type) for job in jobs]))


async def settle_jobs(call: RouteCall[SettleRequest, None]) -> HttpResponse | Stream:
    """Settle attempts that the worker still holds, each by itself; idempotent."""
    outcomes, refused = wire.outcomes_of(call.body)
    results = [AttemptResult(*outcome) for outcome in outcomes]
    worker = wire.worker_id(call.body.worker)
    settled = await call.service.engine.remote_workers.settle(worker, results, by=tenant_of(call))
    return HttpResponse(SettledOut(sorted(str(job_id) for job_id in settled), refused))


async def depart_worker(call: RouteCall[DepartRequest, None]) -> HttpResponse | Stream:
    """Remove a worker that holds no jobs."""
    worker = wire.worker_id(call.body.worker)
    return HttpResponse(DepartedOut(await call.service.engine.remote_workers.depart(worker, by=tenant_of(call))))


async def list_recorded_steps(call: RouteCall[None, StepsQuery]) -> HttpResponse | Stream:
    """List the steps that earlier attempts of a job recorded."""
    steps, more = await call.service.engine.remote_workers.steps(
        _job(call.query), after=read_step_cursor(call.query.cursor), by=tenant_of(call)
    )
    return HttpResponse(
        StepList([wire.step_record(step) for step in steps], step_cursor(steps[-1].key) if more else None)
    )


async def record_step(call: RouteCall[StepRequest, None]) -> HttpResponse | Stream:
    """Record a step of a job; a finished step is never overwritten."""
    await call.service.engine.remote_workers.record_step(_job(call.body), wire.step_of(call.body), by=tenant_of(call))
    return HttpResponse(None, 204)


async def save_progress(call: RouteCall[ProgressRequest, None]) -> HttpResponse | Stream:
    """Save the progress of a job."""
    progress = wire.progress_of(call.body.fraction, sanitize(call.body.note, _MAX_NOTE_CHARS))
    await call.service.engine.remote_workers.save_progress(_job(call.body), progress, by=tenant_of(call))
    return HttpResponse(None, 204)


def tenant_of(call: RouteCall[Any, Any]) -> str | None:
    """Return the tenant whose jobs and workers the caller may use; None for all tenants."""
    return visible_tenant(call.caller, call.request.header("holdfast-tenant"))


def _job(request: StepRequest | StepsQuery | ProgressRequest) -> HeldJob:
    return HeldJob(wire.job_id(request.id), request.fence, wire.worker_id(request.worker))


def _held(worker: WorkerId, jobs: list[HeldShape]) -> list[HeldJob]:
    return [HeldJob(wire.job_id(job.id), job.fence, worker) for job in dict.fromkeys(jobs)]


async def _check_held(
    call: RouteCall[Any, None], worker: WorkerId, jobs: list[HeldShape], *, draining: bool = False
) -> LostOut:
    remote_workers, held = call.service.engine.remote_workers, _held(worker, jobs)
    lost = await remote_workers.lost(held, worker, by=tenant_of(call))
    paused = await remote_workers.paused([job for job in held if job.id not in lost])
    return LostOut(sorted(map(str, lost)), sorted(map(str, paused)), draining)


@asynccontextmanager
async def _poll_ends(call: RouteCall[Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
    """Tasks that end a long poll when done: the client disconnects, or the node shuts down."""
    ends: list[asyncio.Task[Any]] = [
        tasks.start(call.request.wait_disconnected(), name="holdfast long poll disconnect", awaited=True),
        tasks.start(call.service.stopping.wait(), name="holdfast long poll shutdown", awaited=True),
    ]
    try:
        yield ends
    finally:
        await tasks.stop(*ends)


ROUTES = (
    Route(
        "POST", "/v1/leases", Scope.WORKER, lease_jobs, "Claim jobs, waiting for them if requested; register a worker",
        {200: LeaseOut}, LeaseRequest, tag="workers", headers=TENANT, error_statuses=(409,), long_poll=True,
    ),
    Route(
        "POST", "/v1/leases/renew", Scope.WORKER, renew_lease, "Renew a lease; returns the jobs that were lost",
        {200: LostOut}, RenewRequest, tag="workers", headers=TENANT, error_statuses=(409,), renewal=True,
    ),
    Route(
        "POST", "/v1/leases/settle", Scope.WORKER, settle_jobs, "Report the outcomes of attempts; idempotent",
        {200: SettledOut}, SettleRequest, body_limit=MAX_BATCH_BODY_BYTES, tag="workers", headers=TENANT,
        error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/leases/lost", Scope.WORKER, check_lost_jobs, "Find out which of these jobs were lost",
        {200: LostOut}, LostRequest, tag="workers", headers=TENANT, error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/leases/held", Scope.WORKER, list_held_jobs,
        "List the jobs that a worker holds, according to the database", {200: HeldPage}, HeldRequest, tag="workers",
        headers=TENANT, error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/leases/depart", Scope.WORKER, depart_worker, "Remove a worker that holds no jobs",
        {200: DepartedOut}, DepartRequest, tag="workers", headers=TENANT, error_statuses=(409,),
    ),
    Route(
        "GET", "/v1/leases/steps", Scope.WORKER, list_recorded_steps,
        "List the steps that earlier attempts of a held job recorded", {200: StepList}, query=StepsQuery, tag="workers",
        headers=TENANT, error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/leases/steps", Scope.WORKER, record_step,
        "Record a step of a held job; a finished step is never overwritten", {204: None}, StepRequest,
        body_limit=MAX_BATCH_BODY_BYTES, tag="workers", headers=TENANT, error_statuses=(409,),
    ),
    Route(
        "POST", "/v1/leases/progress", Scope.WORKER, save_progress, "Save the progress of a held job", {204: None},
        ProgressRequest, tag="workers", headers=TENANT, error_statuses=(409,),
    ),
)  # fmt: skip
