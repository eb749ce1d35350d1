"""The worker protocol: claim, renew, settle, and what handlers record meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast import tasks
from holdfast.api.http import ClientGone, HttpResponse, Stream
from holdfast.api.routes.jobs import TENANT
from holdfast.api.routing import MAX_BATCH_BODY_BYTES, Call, Route
from holdfast.engine.remote_workers import AttemptResult, ClaimRequest
from holdfast.model.access import Scope
from holdfast.model.ids import WorkerId, new_worker_id, worker_name
from holdfast.model.job import HeldJob
from holdfast.model.time import in_seconds, seconds
from holdfast.policy.access import visible_tenant
from holdfast.policy.text import sanitize
from holdfast.wire import worker_protocol_codec as wire
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


async def lease_jobs(call: Call[LeaseRequest, None]) -> HttpResponse | Stream:
    """Claim jobs, as soon as there are some."""
    asked = call.body
    by, remote_workers = tenant_of(call), call.service.engine.remote_workers
    lease = wire.lease_of(asked.lease)
    wait = asked.wait
    if asked.worker is None or asked.register is not None:
        worker = new_worker_id() if asked.worker is None else wire.worker_id(asked.worker)
        about = asked.register or About()
        about.queues = about.queues or ",".join(asked.queues)
        about.types = about.types or asked.types
        info = wire.info_of(about, worker, by)
        await remote_workers.register(info, lease or seconds(DEFAULT_LEASE_S), wire.types_of(about))
        wait = 0.0  # it cannot renew a lease whose name it does not know
    else:
        worker = wire.worker_id(asked.worker)
        if lease is not None:
            await remote_workers.renew(worker, lease, by=by)
            wait = min(wait, in_seconds(lease) / 2)
    wanted = ClaimRequest(tuple(asked.queues), None if asked.types is None else frozenset(asked.types), asked.limit)
    async with _poll_ends(call) as ends:
        jobs, draining = await remote_workers.claim(worker, wanted, wait=wait, by=by, ends=ends)
        if ends[0].done():
            raise ClientGone
    return HttpResponse(LeaseOut(worker_name(worker), [wire.leased(job) for job in jobs], draining))


async def renew_lease(call: Call[RenewRequest, None]) -> HttpResponse | Stream:
    """Prolong a lease, and tell what was taken away from its worker, and whether it is to end."""
    asked, by, remote_workers = call.body, tenant_of(call), call.service.engine.remote_workers
    worker, lease = wire.worker_id(asked.worker), wire.lease_of(asked.lease) or seconds(DEFAULT_LEASE_S)
    draining = await remote_workers.renew(worker, lease, by=by, memory=asked.memory, draining=asked.draining)
    lost = await remote_workers.lost(_held(worker, asked.held), worker, by=by)
    return HttpResponse(LostOut(sorted(str(each) for each in lost), draining))


async def lost_jobs(call: Call[LostRequest, None]) -> HttpResponse | Stream:
    """What was taken away from a worker."""
    worker = wire.worker_id(call.body.worker)
    held = _held(worker, call.body.held)
    lost = await call.service.engine.remote_workers.lost(held, worker, by=tenant_of(call))
    return HttpResponse(LostOut(sorted(str(each) for each in lost)))


async def held_jobs(call: Call[HeldRequest, None]) -> HttpResponse | Stream:
    """What a worker holds."""
    worker = wire.worker_id(call.body.worker)
    jobs = await call.service.engine.remote_workers.held(worker, call.body.limit, by=tenant_of(call))
    return HttpResponse(HeldPage([HeldOut(str(job.id), job.fence, job.queue, job.type) for job in jobs]))


async def settle_jobs(call: Call[SettleRequest, None]) -> HttpResponse | Stream:
    """Take in what came of attempts, where they are still the worker's."""
    results = [
        AttemptResult(wire.job_id(given.id), given.fence, *wire.outcome_of(given, index))
        for index, given in enumerate(call.body.outcomes)
    ]
    worker = wire.worker_id(call.body.worker)
    settled = await call.service.engine.remote_workers.settle(worker, results, by=tenant_of(call))
    return HttpResponse(SettledOut(sorted(str(each) for each in settled)))


async def depart_worker(call: Call[DepartRequest, None]) -> HttpResponse | Stream:
    """Strike a worker that holds nothing."""
    worker = wire.worker_id(call.body.worker)
    return HttpResponse(DepartedOut(await call.service.engine.remote_workers.depart(worker, by=tenant_of(call))))


async def recorded_steps(call: Call[None, StepsQuery]) -> HttpResponse | Stream:
    """What earlier attempts of a job recorded."""
    steps = await call.service.engine.remote_workers.steps(_job(call.query), by=tenant_of(call))
    return HttpResponse(StepList([wire.step_record(step) for step in steps]))


async def record_step(call: Call[StepRequest, None]) -> HttpResponse | Stream:
    """Record a step of a job; what is done stays as it is."""
    await call.service.engine.remote_workers.record_step(_job(call.body), wire.step_of(call.body), by=tenant_of(call))
    return HttpResponse(None, 204)


async def save_progress(call: Call[ProgressRequest, None]) -> HttpResponse | Stream:
    """Keep how far a job is."""
    progress = wire.progress_of(call.body.fraction, sanitize(call.body.note, _MAX_NOTE_CHARS))
    await call.service.engine.remote_workers.save_progress(_job(call.body), progress, by=tenant_of(call))
    return HttpResponse(None, 204)


def tenant_of(call: Call[Any, Any]) -> str | None:
    """Whose jobs and workers a caller reaches; None: everybody's."""
    return visible_tenant(call.caller, call.request.header("holdfast-tenant"))


def _job(asked: StepRequest | StepsQuery | ProgressRequest) -> HeldJob:
    return HeldJob(wire.job_id(asked.id), asked.fence, wire.worker_id(asked.worker))


def _held(worker: WorkerId, named: list[HeldShape]) -> list[HeldJob]:
    return [HeldJob(wire.job_id(each.id), each.fence, worker) for each in dict.fromkeys(named)]


@asynccontextmanager
async def _poll_ends(call: Call[Any, Any]) -> AsyncIterator[list[asyncio.Task[Any]]]:
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
        "POST", "/v1/leases", Scope.WORKER, lease_jobs, "Claim jobs, waiting for them if asked to; register a worker",
        {200: LeaseOut}, LeaseRequest, tag="workers", headers=TENANT, refusals=(409,),
    ),
    Route(
        "POST", "/v1/leases/renew", Scope.WORKER, renew_lease, "Prolong a lease; hear which jobs were taken away",
        {200: LostOut}, RenewRequest, tag="workers", headers=TENANT, refusals=(409,),
    ),
    Route(
        "POST", "/v1/leases/settle", Scope.WORKER, settle_jobs, "Report what came of attempts; safe to repeat",
        {200: SettledOut}, SettleRequest, body_limit=MAX_BATCH_BODY_BYTES, tag="workers",
        headers=TENANT, refusals=(409,),
    ),
    Route(
        "POST", "/v1/leases/lost", Scope.WORKER, lost_jobs, "Which of these jobs were taken away", {200: LostOut},
        LostRequest, tag="workers", headers=TENANT, refusals=(409,),
    ),
    Route(
        "POST", "/v1/leases/held", Scope.WORKER, held_jobs, "What a worker holds, by the database's account",
        {200: HeldPage}, HeldRequest, tag="workers", headers=TENANT, refusals=(409,),
    ),
    Route(
        "POST", "/v1/leases/depart", Scope.WORKER, depart_worker, "Strike a worker that holds nothing",
        {200: DepartedOut}, DepartRequest, tag="workers", headers=TENANT, refusals=(409,),
    ),
    Route(
        "GET", "/v1/leases/steps", Scope.WORKER, recorded_steps, "What earlier attempts of a held job recorded",
        {200: StepList}, query=StepsQuery, tag="workers", headers=TENANT, refusals=(409,),
    ),
    Route(
        "POST", "/v1/leases/steps", Scope.WORKER, record_step, "Record a step of a held job; what is done stays",
        {204: None}, StepRequest, body_limit=MAX_BATCH_BODY_BYTES, tag="workers",
        headers=TENANT, refusals=(409,),
    ),
    Route(
        "POST", "/v1/leases/progress", Scope.WORKER, save_progress, "Keep how far a held job is", {204: None},
        ProgressRequest, tag="workers", headers=TENANT, refusals=(409,),
    ),
)  # fmt: skip
