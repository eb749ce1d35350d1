"""Requests of remote applications and workers, and the decoding of their responses. No I/O."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET, Raw, Struct

from holdfast.errors import Invalid
from holdfast.model.access import DEFAULT_TENANT
from holdfast.model.claim_check import ClaimCheck
from holdfast.model.ids import JobId, WorkerId, worker_name
from holdfast.model.job import HeldJob, Job, JobSpec, RetryRule, UniqueSpec
from holdfast.model.job_type import JobType
from holdfast.model.outcome import Report
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339, seconds
from holdfast.model.worker import LeaseStatus, Unresponsiveness, WorkerInfo
from holdfast.sdk.responses import Response, read
from holdfast.wire import worker_protocol_codec as wire
from holdfast.wire.job_detail import JobDetail
from holdfast.wire.types import BatchOut, JobOut
from holdfast.wire.worker_protocol import (
    MAX_HELD_JOBS,
    MAX_JOBS_PER_REQUEST,
    About,
    DepartedOut,
    DepartRequest,
    HeldPage,
    HeldRequest,
    HeldShape,
    LeaseOut,
    LeaseRequest,
    LostOut,
    LostRequest,
    OutcomeIn,
    RenewRequest,
    SettledOut,
    SettleRequest,
    StepList,
    StepRequest,
)

MAX_SETTLE_BYTES = 4 * 1024 * 1024
MAX_SETTLE_PARTS = 50_000
"""Maximum number of JSON members, lists and objects in a request; a limit of the node."""

_ENCODE = msgspec.json.Encoder().encode


class Request(NamedTuple):
    """HTTP request."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    repeatable: bool = False
    """Idempotent: safe to retry."""
    wait: float = 0.0
    """Seconds that the node may hold the request (long poll), in addition to the usual timeout."""


class RemoteReceipt(NamedTuple):
    """Receipt of a submission; the job is durable."""

    id: JobId
    created_at: Instant
    replayed: bool
    """An earlier submission with the same key created this job; nothing was inserted."""


# Jobs


def submit(spec: JobSpec) -> Request:
    """Submit one job. Without an idempotency key, a retry could create a second job."""
    headers = _tenant(spec.tenant)
    if spec.idempotency_key is not None:
        headers["idempotency-key"] = spec.idempotency_key
    return Request("POST", "/v1/jobs", _body(spec), headers, repeatable=spec.idempotency_key is not None)


def submit_many(specs: Sequence[JobSpec]) -> Request:
    """Submit many jobs of one tenant atomically."""
    if len({spec.tenant for spec in specs}) > 1:
        raise Invalid("the jobs of this batch belong to several tenants: send one batch per tenant", pointer="/tenant")
    jobs = [Raw(_body(spec, idempotency_key=spec.idempotency_key)) for spec in specs]
    repeatable = all(spec.idempotency_key is not None for spec in specs)
    headers = _tenant(specs[0].tenant)
    return Request("POST", "/v1/jobs/batch", _ENCODE({"jobs": jobs}), headers, repeatable=repeatable)


def get(job_id: JobId) -> Request:
    """Get one job."""
    return Request("GET", f"/v1/jobs/{quote(str(job_id))}", repeatable=True)


def cancel(job_id: JobId, reason: str) -> Request:
    """Cancel a job, even if it is running."""
    return Request("POST", f"/v1/jobs/{job_id}/cancel", _ENCODE({"reason": reason}), repeatable=True)


def retry(job_id: JobId) -> Request:
    """Make a job ready now."""
    return Request("POST", f"/v1/jobs/{job_id}/retry")


def read_receipt(response: Response) -> RemoteReceipt:
    """Return the receipt of a submission."""
    job = read(response, JobOut)
    return RemoteReceipt(wire.job_id(job.id), wire.parse_time(job.created_at) or Instant(0), response.status == 200)


def read_receipts(response: Response) -> list[RemoteReceipt]:
    """Return the receipts of a batch, in its order."""
    return [
        RemoteReceipt(wire.job_id(item.id), wire.parse_time(item.created_at) or Instant(0), item.replayed)
        for item in read(response, BatchOut).items
    ]


def read_job(response: Response) -> Job:
    """Return a job. Fields that the API does not show, such as `fence`, have default values."""
    detail = read(response, JobDetail)
    return Job(
        id=wire.job_id(detail.id),
        seq=0,
        status=Status(detail.status),
        fence=0,
        worker=None if detail.worker is None else wire.worker_id(detail.worker),
        tenant=detail.tenant,
        queue=detail.queue,
        type=detail.type,
        payload=bytes(detail.payload),
        priority=detail.priority,
        attempts=detail.attempts,
        max_attempts=detail.max_attempts,
        releases=0,
        generation=detail.generation,
        cost=detail.cost,
        created_at=wire.parse_time(detail.created_at) or Instant(0),
        scheduled_at=wire.parse_time(detail.scheduled_at),
        started_at=wire.parse_time(detail.started_at),
        timeout=None if detail.timeout is None else seconds(detail.timeout),
        deadline=wire.parse_time(detail.deadline),
        retry=None,
        tags=_ENCODE(detail.tags) if detail.tags else None,
        concurrency_key=detail.concurrency_key,
        idempotency_key=detail.idempotency_key,
        attempt_log=_ENCODE(detail.attempt_log) if detail.attempt_log else None,
        progress=wire.none_if_null(detail.progress),
        finished_at=wire.parse_time(detail.finished_at),
        result=bytes(detail.result) if detail.status == "succeeded" else None,
        reason=detail.reason,
    )


# Leases


def register(worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> Request:
    """Register a worker and its job types."""
    about = About(worker.name, worker.host, worker.pid, worker.version, worker.queues, worker.slots, node=worker.node)
    about.described = [wire.type_in(job_type) for job_type in described]
    about.types = None if worker.types is None else list(worker.types)
    fields = LeaseRequest(worker=worker_name(worker.id), register=about, lease=in_seconds(lease), limit=0)
    return _post("/v1/leases", fields)


def claim(worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None, limit: int, wait: float) -> Request:
    """Claim jobs; the node waits up to `wait` seconds for the first (long poll)."""
    type_names = None if types is None else list(types)
    fields = LeaseRequest(worker=worker_name(worker), queues=list(queues), types=type_names, limit=limit, wait=wait)
    return _post("/v1/leases", fields)._replace(wait=wait)


def renew(
    worker: WorkerId,
    lease: Duration,
    *,
    memory: int | None = None,
    draining: bool = False,
    unresponsive: Unresponsiveness | None = None,
) -> Request:
    """Renew a lease."""
    fields = RenewRequest(worker_name(worker), in_seconds(lease), memory, draining)
    if unresponsive is not None:
        fields.unresponsive, fields.blocked_by = in_seconds(unresponsive.span), unresponsive.blocked_by
    return _post("/v1/leases/renew", fields, repeatable=True)


def read_lease_status(response: Response) -> LeaseStatus:
    """Return the status of a lease that was renewed."""
    return LeaseStatus.DRAINING if read(response, LostOut).draining else LeaseStatus.KEPT


def lost(worker: WorkerId, held: Collection[HeldJob]) -> Request:
    """Ask which of these jobs the worker no longer holds."""
    jobs = [HeldShape(str(job.id), job.fence) for job in held]
    return _post("/v1/leases/lost", LostRequest(worker_name(worker), jobs), repeatable=True)


def held(worker: WorkerId, limit: int) -> Request:
    """List the jobs that a worker holds."""
    return _post("/v1/leases/held", HeldRequest(worker_name(worker), min(limit, MAX_HELD_JOBS)), repeatable=True)


def settle(worker: WorkerId, reports: Sequence[Report]) -> Iterator[Request]:
    """Report outcomes of attempts, in as few requests as the limits of a node allow."""
    batch: list[OutcomeIn] = []
    size = parts = 0
    for report in reports:
        outcome = wire.outcome_in(report)
        text = _ENCODE(outcome)
        added = text.count(b":") + text.count(b"[") + text.count(b"{")
        full = (
            size + len(text) > MAX_SETTLE_BYTES
            or parts + added > MAX_SETTLE_PARTS
            or len(batch) >= MAX_JOBS_PER_REQUEST
        )
        if batch and full:
            yield _settle(worker, batch)
            batch, size, parts = [], 0, 0
        batch.append(outcome)
        size += len(text)
        parts += added
    if batch:
        yield _settle(worker, batch)


def depart(worker: WorkerId) -> Request:
    """Remove a worker that holds no job."""
    return _post("/v1/leases/depart", DepartRequest(worker_name(worker)), repeatable=True)


def steps(job: HeldJob, cursor: str | None) -> Request:
    """List the steps that earlier attempts recorded, after this cursor."""
    fields = {"worker": worker_name(job.worker), "id": str(job.id), "fence": str(job.fence)}
    query = urlencode(fields if cursor is None else {**fields, "cursor": cursor})
    return Request("GET", f"/v1/leases/steps?{query}", repeatable=True)


def record_step(job: HeldJob, step: Step) -> Request:
    """Record a step."""
    state = "done" if step.state is StepState.DONE else "started"
    result: Any = UNSET if step.result is None else Raw(step.result)
    fields = StepRequest(worker_name(job.worker), str(job.id), job.fence, step.key, state, result)  # type: ignore[arg-type]
    return _post("/v1/leases/steps", fields, repeatable=True)


def save_progress(job: HeldJob, progress: bytes) -> Request:
    """Store the progress of a job."""
    shown = msgspec.json.decode(progress)
    fields = {"worker": worker_name(job.worker), "id": str(job.id), "fence": job.fence, **shown}
    return Request("POST", "/v1/leases/progress", _ENCODE(fields), repeatable=True)


def read_claimed_jobs(response: Response) -> list[Job]:
    """Return the claimed jobs."""
    lease = read(response, LeaseOut)
    worker = wire.worker_id(lease.worker)
    return [wire.job_of(job, worker) for job in lease.jobs]


def read_lost_jobs(response: Response) -> set[JobId]:
    """Return the ids of the jobs that the worker no longer holds."""
    return {wire.job_id(job_id) for job_id in read(response, LostOut).lost}


def read_claim_check(response: Response) -> ClaimCheck:
    """Return the claimed jobs that must not start."""
    out = read(response, LostOut)
    return ClaimCheck({wire.job_id(job_id) for job_id in out.lost}, {wire.job_id(job_id) for job_id in out.paused})


def read_held_jobs(response: Response, worker: WorkerId) -> list[Job]:
    """Return the jobs that a worker holds, with only the fields that releasing them requires."""
    return [wire.held_job(job, worker) for job in read(response, HeldPage).jobs]


def read_settled_jobs(response: Response) -> set[JobId]:
    """Return the ids of the settled jobs. Raises `Invalid` if the node refused an outcome."""
    out = read(response, SettledOut)
    if out.refused:
        raise Invalid(out.refused[0].detail, pointer=out.refused[0].pointer)
    return {wire.job_id(job_id) for job_id in out.settled}


def read_departed(response: Response) -> bool:
    """Return whether the worker was removed."""
    return read(response, DepartedOut).departed


def read_steps(response: Response) -> tuple[list[Step], str | None]:
    """Return a page of the steps that earlier attempts recorded, and its cursor."""
    page = read(response, StepList)
    return wire.steps_of(page.steps), page.next_cursor


def _post(path: str, fields: Struct, *, repeatable: bool = False) -> Request:
    return Request("POST", path, _ENCODE(fields), repeatable=repeatable)


def _settle(worker: WorkerId, outcomes: list[OutcomeIn]) -> Request:
    return _post("/v1/leases/settle", SettleRequest(worker_name(worker), outcomes), repeatable=True)


def _tenant(tenant: str) -> dict[str, str]:
    """Return the tenant header; without one, the request acts for the tenant of the API key."""
    return {} if tenant == DEFAULT_TENANT else {"holdfast-tenant": tenant}


def _body(spec: JobSpec, *, idempotency_key: str | None = None) -> bytes:
    """Return a submission as JSON, without fields that are None."""
    fields: dict[str, Any] = {
        "type": spec.type,
        "payload": spec.payload,
        "queue": spec.queue,
        "priority": spec.priority,
        "scheduled_at": None if spec.scheduled_at is None else rfc3339(spec.scheduled_at),
        "delay": _seconds(spec.delay),
        "max_attempts": spec.max_attempts,
        "timeout": _seconds(spec.timeout),
        "retry": None if spec.retry is None else _retry(spec.retry),
        "cost": spec.cost,
        "tags": list(spec.tags),
        "unique": None if spec.unique is None else _unique(spec.unique),
        "deadline": None if spec.deadline is None else rfc3339(spec.deadline),
        "concurrency_key": spec.concurrency_key,
        "idempotency_key": idempotency_key,
    }
    reject_non_finite(spec.payload)
    try:
        return _ENCODE({name: value for name, value in fields.items() if value is not None})
    except (TypeError, ValueError, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise Invalid(f"the payload cannot be encoded as JSON: {error}", pointer="/payload") from error


def reject_non_finite(payload: Any) -> None:
    """Raise `Invalid` for NaN and infinities, which the JSON encoder would replace by null."""
    left = [payload]
    while left:
        value = left.pop()
        if isinstance(value, float) and not math.isfinite(value):
            raise Invalid(f"the payload contains {value}, which JSON cannot represent", pointer="/payload")
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list | tuple):
            left += value


def _seconds(span: Duration | None) -> float | None:
    return None if span is None else in_seconds(span)


def _retry(rule: RetryRule) -> dict[str, Any]:
    shown: dict[str, Any] = {"base": in_seconds(rule.base), "cap": in_seconds(rule.cap), "jitter": rule.jitter}
    if rule.delays:
        shown["delays"] = [in_seconds(delay) for delay in rule.delays]
    return shown


def _unique(spec: UniqueSpec) -> dict[str, Any]:
    return {"by": list(spec.by), "within": in_seconds(spec.within), "on_conflict": spec.on_conflict}
