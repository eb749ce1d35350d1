"""Conversion between rows of MySQL and MariaDB and the values of the model."""

from typing import Any
from uuid import UUID

from holdfast.model.ids import WorkerId
from holdfast.model.job import Job, NewJob
from holdfast.model.state import AWAITING_KEY, Status
from holdfast.model.time import Instant
from holdfast.store.codes import Parked
from holdfast.store.mysql.literal import literal
from holdfast.store.sql.codec import Row, retry_bytes, tags_bytes

_READY = Status.READY.code
_SCHEDULED = Status.SCHEDULED.code


def job_row(row: Row) -> Row:
    """Convert a row of the columns `job` (and `ended`) to the types of the shared code."""
    return (
        UUID(bytes=row[0]),
        *row[1:4],
        row[4] or None,
        *row[5:17],
        row[17] or None,
        *row[18:22],
        _text(row[22]),
        _text(row[23]),
        *row[24:],
    )


def claimed_job(row: Row, worker: WorkerId, at: Instant, slots: int) -> Job:
    """Return the job after the claim, from its row before the claim."""
    fields: Row = (
        UUID(bytes=row[0]),
        row[1],
        Status.RUNNING,
        row[3] + 1,
        worker,
        *row[5:10],
        row[10] + 1,
        *row[11:17],
        at,
        *row[18:22],
        _text(row[22]),
        _text(row[23]),
        *row[24:26],
        slots,
    )
    return Job(*fields)


def new_row(job: NewJob, position: int) -> str:
    """Return a new job as a row of `insert`; `next_positions` sets the variables that it uses."""
    spec = job.spec
    status: Any = _READY if spec.concurrency_key is None else AWAITING_KEY
    parked: Any = int(Parked.NOT_PARKED if spec.concurrency_key is None else Parked.PARKED_FOR_KEY)
    scheduled = "NULL"
    due: Any = 0
    if spec.scheduled_at is not None:
        scheduled = literal(spec.scheduled_at)
        later = f"{scheduled} > @holdfast_at"
        status = f"IF({later}, {_SCHEDULED}, {status})"
        parked = f"IF({later}, {Parked.PARKED_UNTIL_DUE:d}, {parked})"
        due = f"IF({later}, {scheduled}, 0)"
    elif spec.delay is not None:
        scheduled = f"@holdfast_at + {literal(spec.delay)}"
        if spec.delay > 0:
            parked, status, due = int(Parked.PARKED_UNTIL_DUE), _SCHEDULED, scheduled
    return (
        f"({parked},{literal(spec.queue)},{literal(spec.tenant)},{spec.priority},@holdfast_seq + {position},"
        f"x'{job.id.hex}',@holdfast_at,{scheduled},{due},{literal(spec.timeout)},{literal(spec.deadline)},{spec.cost},{status},"
        f"{job.max_attempts},{literal(spec.type)},{literal(_bytes(spec.concurrency_key))},"
        f"{literal(_bytes(spec.idempotency_key))},x'{job.payload.hex()}',{literal(retry_bytes(job))},"
        f"{literal(tags_bytes(job))})"
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode()
