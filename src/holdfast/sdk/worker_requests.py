"""Requests to a node, and how what comes back is read. No I/O: whoever sends them is somebody else's business."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET, Raw, Struct

from holdfast.errors import Invalid
from holdfast.model.access import DEFAULT_TENANT
from holdfast.model.ids import JobId, WorkerId, worker_name
from holdfast.model.job import HeldJob, Job, JobSpec, RetryRule, UniqueSpec
from holdfast.model.job_type import JobType
from holdfast.model.outcome import Report
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import Duration, Instant, in_seconds, rfc3339, seconds
from holdfast.model.worker import LeaseStatus, WorkerInfo
from holdfast.sdk.responses import Response, read
from holdfast.wire import worker_protocol_codec as wire
from holdfast.wire.types import BatchOut, JobDetail, JobOut
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

LARGEST_SETTLE = 4 * 1024 * 1024
MOST_PARTS = 50_000
"""Bytes, and names, lists and objects, of the outcomes that go out together: what a node takes at once."""

_ENCODE = msgspec.json.Encoder().encode


class Request(NamedTuple):
    """What to send."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    repeatable: bool = False
    """To do it twice is to do it once."""
    wait: float = 0.0
    """Seconds that the answer may take, on top of what any may."""


class Receipt(NamedTuple):
    """The answer to a submission: the job is durable."""

    id: JobId
    created_at: Instant
    replayed: bool
    """An earlier submission with the same key made this job; nothing was added."""


# Jobs


def submit(spec: JobSpec) -> Request:
    """Submit one job. Without a key it may not be repeated: that could make two of it."""
    headers = _tenant(spec.tenant)
    if spec.idempotency_key is not None:
        headers["idempotency-key"] = spec.idempotency_key
    return Request("POST", "/v1/jobs", _body(spec), headers, repeatable=spec.idempotency_key is not None)


def submit_many(specs: Sequence[JobSpec]) -> Request:
    """Submit many: all, or none. All are of one tenant."""
    if len({spec.tenant for spec in specs}) > 1:
        raise Invalid("the jobs of a batch are of several tenants: send a batch for each", pointer="/tenant")
    jobs = [Raw(_body(spec, idempotency_key=spec.idempotency_key)) for spec in specs]
    repeatable = all(spec.idempotency_key is not None for spec in specs)
    headers = _tenant(specs[0].tenant)
    return Request("POST", "/v1/jobs/batch", _ENCODE({"jobs": jobs}), headers, repeatable=repeatable)


def get(job_id: JobId) -> Request:
    """One job and all that is known of it."""
    return Request("GET", f"/v1/jobs/{quote(str(job_id))}", repeatable=True)


def cancel(job_id: JobId, reason: str) -> Request:
    """Cancel a job, also one that runs."""
    return Request("POST", f"/v1/jobs/{job_id}/cancel", _ENCODE({"reason": reason}), repeatable=True)


def retry(job_id: JobId) -> Request:
    """Have a job run now."""
    return Request("POST", f"/v1/jobs/{job_id}/retry")


def receipt(response: Response) -> Receipt:
    """What a submission was answered with."""
    job = read(response, JobOut)
    return Receipt(wire.job_id(job.id), wire.when(job.created_at) or Instant(0), response.status == 200)


def receipts(response: Response) -> list[Receipt]:
    """What a batch was answered with, in its order."""
    return [
        Receipt(wire.job_id(each.id), wire.when(each.created_at) or Instant(0), each.replayed)
        for each in read(response, BatchOut).items
    ]


def job(response: Response) -> Job:
    """A job as far as it is shown to others."""
    found = read(response, JobDetail)
    return Job(
        id=wire.job_id(found.id),
        seq=0,
        status=Status(found.status),
        fence=0,
        worker=None if found.worker is None else wire.worker_id(found.worker),
        tenant=found.tenant,
        queue=found.queue,
        type=found.type,
        payload=bytes(found.payload),
        priority=found.priority,
        attempts=found.attempts,
        max_attempts=found.max_attempts,
        releases=0,
        generation=found.generation,
        cost=found.cost,
        created_at=wire.when(found.created_at) or Instant(0),
        scheduled_at=wire.when(found.scheduled_at),
        started_at=wire.when(found.started_at),
        timeout=None if found.timeout is None else seconds(found.timeout),
        deadline=wire.when(found.deadline),
        retry=None,
        tags=_ENCODE(found.tags) if found.tags else None,
        concurrency_key=found.concurrency_key,
        idempotency_key=found.idempotency_key,
        attempt_log=_ENCODE(found.attempt_log) if found.attempt_log else None,
        progress=wire.unless_null(found.progress),
        finished_at=wire.when(found.finished_at),
        result=bytes(found.result) if found.status == "succeeded" else None,
        reason=found.reason,
    )


# Leases


def register(worker: WorkerInfo, lease: Duration, described: Sequence[JobType] = ()) -> Request:
    """Enter a worker."""
    about = About(worker.name, worker.host, worker.pid, worker.version, worker.queues, worker.slots, node=worker.node)
    about.described = [wire.type_in(each) for each in described]
    about.types = None if worker.types is None else list(worker.types)
    asked = LeaseRequest(worker=worker_name(worker.id), register=about, lease=in_seconds(lease), limit=0)
    return _post("/v1/leases", asked)


def claim(worker: WorkerId, queues: Sequence[str], types: Sequence[str] | None, limit: int, wait: float) -> Request:
    """Claim jobs, waiting for them."""
    known = None if types is None else list(types)
    asked = LeaseRequest(worker=worker_name(worker), queues=list(queues), types=known, limit=limit, wait=wait)
    return _post("/v1/leases", asked)._replace(wait=wait)


def renew(worker: WorkerId, lease: Duration, *, memory: int | None = None, draining: bool = False) -> Request:
    """Prolong a lease."""
    asked = RenewRequest(worker_name(worker), in_seconds(lease), memory, draining)
    return _post("/v1/leases/renew", asked, repeatable=True)


def renewed(response: Response) -> LeaseStatus:
    """What became of a lease that lives."""
    return LeaseStatus.DRAINING if read(response, LostOut).draining else LeaseStatus.KEPT


def lost(worker: WorkerId, held: Collection[HeldJob]) -> Request:
    """Ask which jobs were taken away."""
    named = [HeldShape(str(each.id), each.fence) for each in held]
    return _post("/v1/leases/lost", LostRequest(worker_name(worker), named), repeatable=True)


def held(worker: WorkerId, limit: int) -> Request:
    """Ask what a worker holds."""
    return _post("/v1/leases/held", HeldRequest(worker_name(worker), min(limit, MAX_HELD_JOBS)), repeatable=True)


def settle(worker: WorkerId, reports: Sequence[Report]) -> Iterator[Request]:
    """Report what came of attempts, in as few requests as a node takes."""
    lot: list[OutcomeIn] = []
    size = parts = 0
    for report in reports:
        outcome = wire.outcome_in(report)
        text = _ENCODE(outcome)
        its_parts = text.count(b":") + text.count(b"[") + text.count(b"{")
        full = size + len(text) > LARGEST_SETTLE or parts + its_parts > MOST_PARTS or len(lot) >= MAX_JOBS_PER_REQUEST
        if lot and full:
            yield _settle(worker, lot)
            lot, size, parts = [], 0, 0
        lot.append(outcome)
        size += len(text)
        parts += its_parts
    if lot:
        yield _settle(worker, lot)


def depart(worker: WorkerId) -> Request:
    """Strike a worker."""
    return _post("/v1/leases/depart", DepartRequest(worker_name(worker)), repeatable=True)


def steps(job: HeldJob) -> Request:
    """Ask what earlier attempts recorded."""
    asked = urlencode({"worker": worker_name(job.worker), "id": str(job.id), "fence": job.fence})
    return Request("GET", f"/v1/leases/steps?{asked}", repeatable=True)


def record_step(job: HeldJob, step: Step) -> Request:
    """Record a step."""
    state = "done" if step.state is StepState.DONE else "started"
    result: Any = UNSET if step.result is None else Raw(step.result)
    asked = StepRequest(worker_name(job.worker), str(job.id), job.fence, step.key, state, result)  # type: ignore[arg-type]
    return _post("/v1/leases/steps", asked, repeatable=True)


def save_progress(job: HeldJob, progress: bytes) -> Request:
    """Keep how far a job is."""
    shown = msgspec.json.decode(progress)
    asked = {"worker": worker_name(job.worker), "id": str(job.id), "fence": job.fence, **shown}
    return Request("POST", "/v1/leases/progress", _ENCODE(asked), repeatable=True)


def leased(response: Response) -> list[Job]:
    """The jobs that a claim brought."""
    answer = read(response, LeaseOut)
    worker = wire.worker_id(answer.worker)
    return [wire.job_of(each, worker) for each in answer.jobs]


def taken_away(response: Response) -> set[JobId]:
    """The jobs that are the worker's no more."""
    return {wire.job_id(each) for each in read(response, LostOut).lost}


def holdings(response: Response, worker: WorkerId) -> list[Job]:
    """What a worker holds; no more is told of each than what it takes to give it back."""
    return [wire.held_job(each, worker) for each in read(response, HeldPage).jobs]


def settled(response: Response) -> set[JobId]:
    """The jobs whose outcome took effect."""
    return {wire.job_id(each) for each in read(response, SettledOut).settled}


def departed(response: Response) -> bool:
    """Whether the worker is struck."""
    return read(response, DepartedOut).departed


def recorded(response: Response) -> list[Step]:
    """What earlier attempts recorded."""
    return wire.steps_of(read(response, StepList).steps)


def _post(path: str, asked: Struct, *, repeatable: bool = False) -> Request:
    return Request("POST", path, _ENCODE(asked), repeatable=repeatable)


def _settle(worker: WorkerId, outcomes: list[OutcomeIn]) -> Request:
    return _post("/v1/leases/settle", SettleRequest(worker_name(worker), outcomes), repeatable=True)


def _tenant(tenant: str) -> dict[str, str]:
    """Whoever names none acts for the tenant of their key."""
    return {} if tenant == DEFAULT_TENANT else {"holdfast-tenant": tenant}


def _body(spec: JobSpec, *, idempotency_key: str | None = None) -> bytes:
    """A submission, without what is as it is anyway."""
    given: dict[str, Any] = {
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
    refuse_infinite(spec.payload)
    try:
        return _ENCODE({name: value for name, value in given.items() if value is not None})
    except (TypeError, ValueError, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise Invalid(f"the payload cannot be written as JSON: {error}", pointer="/payload") from error


def refuse_infinite(payload: Any) -> None:
    """JSON has no word for these, and would be given null in their place."""
    left = [payload]
    while left:
        each = left.pop()
        if isinstance(each, float) and not math.isfinite(each):
            raise Invalid(f"the payload has {each}, which JSON cannot carry", pointer="/payload")
        if isinstance(each, dict):
            left += each.values()
        elif isinstance(each, list | tuple):
            left += each


def _seconds(span: Duration | None) -> float | None:
    return None if span is None else in_seconds(span)


def _retry(rule: RetryRule) -> dict[str, Any]:
    shown: dict[str, Any] = {"base": in_seconds(rule.base), "cap": in_seconds(rule.cap), "jitter": rule.jitter}
    if rule.delays:
        shown["delays"] = [in_seconds(each) for each in rule.delays]
    return shown


def _unique(asked: UniqueSpec) -> dict[str, Any]:
    return {"by": list(asked.by), "within": in_seconds(asked.within), "on_conflict": asked.on_conflict}
