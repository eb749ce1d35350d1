"""Between this dialect's rows and the values everything else is written in."""

from typing import Any
from uuid import UUID

from holdfast.model.ids import WorkerId
from holdfast.model.job import Job, NewJob
from holdfast.model.state import AWAITING_KEY, Status
from holdfast.model.time import Instant
from holdfast.store.mysql.literal import literal
from holdfast.store.sql.codec import Row, retry_bytes, tags_bytes

_READY = Status.READY.code
_SCHEDULED = Status.SCHEDULED.code


def job_row(row: Row) -> Row:
    """A row of the columns `job`, and perhaps `ended`, as the shared code expects it: ids, texts and absent values."""
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
    """A job as the claim leaves it, from its row as the claim found it."""
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
    """A new job as a row of the statement `insert`; instants are taken from what `draw` drew."""
    status: Any = _READY if job.concurrency_key is None else AWAITING_KEY
    parked: Any = 0 if job.concurrency_key is None else 2
    scheduled = "NULL"
    due: Any = 0
    if job.scheduled_at is not None:
        scheduled = literal(job.scheduled_at)
        later = f"{scheduled} > @holdfast_at"
        status = f"IF({later}, {_SCHEDULED}, {status})"
        parked = f"IF({later}, 1, {parked})"
        due = f"IF({later}, {scheduled}, 0)"
    elif job.delay is not None:
        scheduled = f"@holdfast_at + {literal(job.delay)}"
        if job.delay > 0:
            parked, status, due = 1, _SCHEDULED, scheduled
    return (
        f"({parked},{literal(job.queue)},{literal(job.tenant)},{job.priority},@holdfast_seq + {position},"
        f"x'{job.id.hex}',@holdfast_at,{scheduled},{due},{literal(job.timeout)},{literal(job.deadline)},{job.cost},{status},"
        f"{job.max_attempts},{literal(job.type)},{literal(_bytes(job.concurrency_key))},"
        f"{literal(_bytes(job.idempotency_key))},x'{job.payload.hex()}',{literal(retry_bytes(job))},"
        f"{literal(tags_bytes(job))})"
    )


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode()
