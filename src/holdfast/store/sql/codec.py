"""Between rows and values: what is the same whatever the driver."""

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
    """A job from a row of the columns `job`, and of `ended` if it is finished."""
    return Job(row[0], row[1], STATUS_OF_CODE[row[2]], *row[3:])


def count_of(row: Row) -> Count:
    """A row of counts."""
    tenant, queue, job_type, status, jobs = row
    return Count(tenant, queue, job_type, STATUS_OF_CODE[status], jobs)


def worker_of(row: Row) -> WorkerRow:
    """A row of the register."""
    worker, name, host, pid, version, queues, slots, tenant, started_at, expires_at, renewed_at, types, *more = row
    node, memory, drain_at = more
    info = WorkerInfo(WorkerId(worker), name, host, pid, version, queues, slots, tenant, types_of(types), node)
    heard = Instant(renewed_at or started_at)
    return WorkerRow(info, Instant(started_at), Instant(expires_at), heard, memory, draining=drain_at is not None)


def departed_of(row: Row) -> tuple[WorkerInfo, Instant]:
    """A row of those that are gone: who it was, and when it was last heard of."""
    worker, name, host, queues, types, tenant, seen_at = row
    info = WorkerInfo(WorkerId(worker), name, host, 0, "", queues, 0, tenant, types_of(types))
    return info, Instant(seen_at)


def types_of(stored: str | bytes | None) -> tuple[str, ...] | None:
    """The types of a worker."""
    return None if stored is None else _TYPES(stored)


def types_text(types: Sequence[str] | None) -> str | None:
    """The same, as stored."""
    return None if types is None else _ENCODE(types).decode()


def step_of(row: Row) -> Step:
    """A row of records."""
    key, state, result, fence, recorded_at = row
    return Step(key if isinstance(key, str) else key.decode(), StepState(state), result, fence, Instant(recorded_at))


def is_due(job: NewJob, at: Instant) -> bool:
    """Whether a job inserted at that instant is ready at once."""
    return job.scheduled_at <= at if job.scheduled_at is not None else not job.delay


def retry_bytes(job: NewJob) -> bytes | None:
    """The job's own retry rule, as stored."""
    return None if job.retry is None else _ENCODE(job.retry)


def tags_bytes(job: NewJob) -> bytes | None:
    """The job's tags, as stored."""
    return _ENCODE(job.tags) if job.tags else None
