"""Conversion between rows and values, for all dialects."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.model.ids import WorkerId
from holdfast.model.job import Count, Job, NewJob
from holdfast.model.state import STATUS_OF_CODE
from holdfast.model.step import Step, StepState
from holdfast.model.time import Instant
from holdfast.model.worker import WorkerInfo, WorkerRow

_ENCODE = msgspec.json.Encoder().encode
_TYPES = msgspec.json.Decoder(tuple[str, ...]).decode

Row = Sequence[Any]


def job_of(row: Row) -> Job:
    """Decode a row of the columns `job`, followed by `ended` if the job has finished."""
    return Job(row[0], row[1], STATUS_OF_CODE[row[2]], *row[3:])


def count_of(row: Row) -> Count:
    """Decode a row of `counts_live` or `counts_dead`."""
    tenant, queue, job_type, status, jobs = row
    return Count(tenant, queue, job_type, STATUS_OF_CODE[status], jobs)


def worker_of(row: Row) -> WorkerRow:
    """Decode a row of `workers`."""
    worker, name, host, pid, version, queues, slots, tenant, started_at, expires_at, renewed_at, types, *more = row
    node, memory, drain_at, unresponsive_since, blocked_by = more
    info = WorkerInfo(WorkerId(worker), name, host, pid, version, queues, slots, tenant, types_of(types), node)
    seen_at = Instant(renewed_at or started_at)
    return WorkerRow(
        info,
        Instant(started_at),
        Instant(expires_at),
        seen_at,
        memory,
        draining=drain_at is not None,
        unresponsive_since=None if unresponsive_since is None else Instant(unresponsive_since),
        blocked_by=blocked_by,
    )


def departed_of(row: Row) -> tuple[WorkerInfo, Instant]:
    """Decode a row of `departed`: the worker, and when it was last seen."""
    worker, name, host, queues, types, tenant, seen_at = row
    info = WorkerInfo(WorkerId(worker), name, host, 0, "", queues, 0, tenant, types_of(types))
    return info, Instant(seen_at)


def types_of(stored: str | bytes | None) -> tuple[str, ...] | None:
    """Decode the job types of a worker; None means all types."""
    return None if stored is None else _TYPES(stored)


def types_text(types: Sequence[str] | None) -> str | None:
    """Encode the job types of a worker."""
    return None if types is None else _ENCODE(types).decode()


def step_of(row: Row) -> Step:
    """Decode a row of `steps`."""
    key, state, result, fence, recorded_at = row
    return Step(key if isinstance(key, str) else key.decode(), StepState(state), result, fence, Instant(recorded_at))


def is_due(job: NewJob, at: Instant) -> bool:
    """Return True if a job inserted at this instant is due immediately."""
    return job.spec.scheduled_at <= at if job.spec.scheduled_at is not None else not job.spec.delay


def retry_bytes(job: NewJob) -> bytes | None:
    """Encode the retry rule of a job."""
    return None if job.spec.retry is None else _ENCODE(job.spec.retry)


def tags_bytes(job: NewJob) -> bytes | None:
    """Encode the tags of a job."""
    return _ENCODE(job.spec.tags) if job.spec.tags else None
