"""Check, insert and acknowledge jobs; a receipt means that the job is durable."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from holdfast.engine.submitting.quotas import insert_batch_within_quota, insert_each_within_quota
from holdfast.engine.submitting.unique import insert_replacing
from holdfast.errors import (
    Conflict,
    DuplicateJob,
    HoldfastError,
    IdempotencyMismatch,
    Invalid,
    InvalidBatch,
    OutcomeUnknown,
    RateLimited,
    Rejected,
    Unavailable,
)
from holdfast.model.ids import JobId, new_job_id
from holdfast.model.job import InsertResult, Job, JobSpec, NewJob
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant, after
from holdfast.policy import submission
from holdfast.policy.quotas import TenantQuota
from holdfast.store.port.store import Store, Tx


class Receipt(NamedTuple):
    """Acknowledgement of a submission: the job is durable."""

    id: JobId
    created_at: Instant
    replayed: bool
    """True if an earlier submission with the same key created this job."""


class SubmitResult(NamedTuple):
    """Submitted job and its receipt."""

    job: NewJob
    receipt: Receipt
    earlier: Job | None = None
    """Job of the earlier submission that this one replays."""


def check(
    specs: Sequence[JobSpec | Invalid], *, max_attempts: int, at_ms: int, from_json: bool = False
) -> list[NewJob]:
    """Return the jobs to insert, or raise `InvalidBatch` naming every invalid spec."""
    jobs: list[NewJob] = []
    faults: dict[int, Invalid] = {}
    for index, spec in enumerate(specs):
        try:
            if isinstance(spec, Invalid):
                raise spec
            jobs.append(submission.accept(spec, new_job_id(at_ms), max_attempts=max_attempts, from_json=from_json))
        except Invalid as fault:
            faults[index] = fault
    if faults:
        raise InvalidBatch(faults)
    return jobs


def check_one(spec: JobSpec, *, max_attempts: int, at_ms: int, from_json: bool = False) -> NewJob:
    """Return the job to insert; raises `Invalid`."""
    return submission.accept(spec, new_job_id(at_ms), max_attempts=max_attempts, from_json=from_json)


def initial_state(job: NewJob, created_at: Instant) -> tuple[Status, Instant | None]:
    """Return the status and due time of a job just inserted, without a read."""
    due = job.scheduled_at
    if due is None:
        if job.delay is None:
            return Status.READY, None
        due = after(created_at, job.delay)
    return Status.SCHEDULED if due > created_at else Status.READY, due


async def get_earlier_job(store: Store, job: NewJob, receipt: Receipt) -> Job:
    """Return the job of the earlier submission; raises `Conflict` if it no longer exists."""
    found = await store.single(lambda tx: tx.get([receipt.id]))
    if not found:
        raise Conflict(
            f"an earlier submission made the job {receipt.id}, which was deleted or is past its retention: "
            f"{'use a new idempotency key' if job.idempotency_key is not None else 'try again'}"
        )
    return found[0]


async def submit_all(
    store: Store, jobs: Sequence[NewJob], *, key_retention: Duration, limits: TenantQuota | None = None
) -> list[Receipt]:
    """Insert all jobs in one transaction, or none; `InvalidBatch` has each fault by index.

    `limits`: the installation's, or None if no tenant here has quotas.
    """
    if twice := _repeated_keys(jobs):
        raise InvalidBatch(
            {index: Invalid("duplicate key in this batch", pointer=where) for index, where in twice.items()}
        )

    async def work(tx: Tx) -> list[Receipt] | HoldfastError:
        if limits is None:
            rows = await insert_replacing(tx, jobs, key_retention=key_retention)
        else:
            answer = await insert_batch_within_quota(tx, jobs, defaults=limits, key_retention=key_retention)
            if isinstance(answer, HoldfastError):
                return answer
            rows = answer
        receipts = [receipt(job, row) for job, row in zip(jobs, rows, strict=True)]
        faults = {i: r for i, r in enumerate(receipts) if isinstance(r, HoldfastError)}
        if faults:
            raise InvalidBatch(faults)
        return [r for r in receipts if isinstance(r, Receipt)]

    several = limits is not None or any(_has_key(job) for job in jobs)
    try:
        done = await (store.run(work) if several else store.single(work))
    except OutcomeUnknown:
        return await _resolve(store, jobs)
    if isinstance(done, HoldfastError):
        raise done
    return done


async def submit_each(
    store: Store, jobs: Sequence[NewJob], *, key_retention: Duration, limits: TenantQuota | None = None
) -> list[Receipt | BaseException]:
    """Insert independent jobs in few transactions; return each one's receipt or error.

    `limits`: the installation's, or None if no tenant here has quotas.
    """
    several = limits is not None or any(map(_has_key, jobs))
    first, later = _split_repeated(jobs) if several else (jobs, [])
    answers: dict[JobId, Receipt | BaseException] = {}

    async def work(tx: Tx) -> Sequence[InsertResult | HoldfastError]:
        if limits is None:
            return await insert_replacing(tx, first, key_retention=key_retention)
        return await insert_each_within_quota(tx, first, defaults=limits, key_retention=key_retention)

    try:
        rows = await (store.run(work) if several else store.single(work))
        if not several:
            return [Receipt(row.id, row.created_at, replayed=False) for row in rows if isinstance(row, InsertResult)]
        answers = {job.id: _answer(job, row) for job, row in zip(first, rows, strict=True)}
    except Rejected as error:
        if len(first) == 1:
            answers = {first[0].id: error}
        else:  # one bad row fails its batch: retry each job alone
            for job in first:
                (answers[job.id],) = await submit_each(store, [job], key_retention=key_retention, limits=limits)
    except OutcomeUnknown as error:
        answers = await _resolve_each(store, first, key_retention, limits, error)
    except HoldfastError as error:
        answers = {job.id: error for job in first}
    if later:
        rest = await submit_each(store, later, key_retention=key_retention, limits=limits)
        answers |= {job.id: answer for job, answer in zip(later, rest, strict=True)}
    return [answers[job.id] for job in jobs]


def _answer(job: NewJob, row: InsertResult | HoldfastError) -> Receipt | HoldfastError:
    return row if isinstance(row, HoldfastError) else receipt(job, row)


def receipt(job: NewJob, row: InsertResult) -> Receipt | HoldfastError:
    """Return the receipt or the error for one inserted row."""
    match row.repeats:
        case None:
            return Receipt(row.id, row.created_at, replayed=False)
        case "idempotency_key" if not row.same_body:
            return IdempotencyMismatch(
                f"the idempotency key {job.idempotency_key!r} was used before for another job ({row.id}): "
                "use a new key for a new job, or repeat the same submission",
                pointer="/idempotency_key",
            )
        case "unique" if job.unique is not None and job.unique.on_conflict == "reject":
            return DuplicateJob(f"a job like this exists already ({row.id}) and is unique", job_id=str(row.id))
        case "unique" if row.holder is not None:
            why = (
                "is running" if row.holder is Status.RUNNING else f"is {row.holder} already, and unique for a while yet"
            )
            return DuplicateJob(
                f"the job to be replaced ({row.id}) {why}: only one that waits can be replaced; submit it again later",
                job_id=str(row.id),
            )
        case _:
            return Receipt(row.id, row.created_at, replayed=True)


async def _resolve(store: Store, jobs: Sequence[NewJob]) -> list[Receipt]:
    """Find out whether a commit with a lost reply happened: one transaction, all jobs or none."""
    found = await _find_committed(store, jobs)
    if found is None or any(job.id not in found for job in jobs):
        raise OutcomeUnknown(
            "the connection broke at the commit, and the jobs are not there (yet): "
            "repeat with idempotency keys to be sure"
        )
    return [Receipt(job.id, found[job.id].created_at, replayed=False) for job in jobs]


async def _resolve_each(
    store: Store, jobs: Sequence[NewJob], key_retention: Duration, limits: TenantQuota | None, error: OutcomeUnknown
) -> dict[JobId, Receipt | BaseException]:
    """Resolve a lost commit reply: retry jobs with a key, look up jobs without one."""
    plain = [job for job in jobs if not _has_key(job)]
    found = await _find_committed(store, plain) or {}
    answers: dict[JobId, Receipt | BaseException] = {
        job.id: Receipt(job.id, found[job.id].created_at, replayed=False) if job.id in found else error for job in plain
    }
    for job in jobs:
        if _has_key(job):
            answers[job.id] = await _submit_again(store, job, key_retention, limits, error)
    return answers


async def _submit_again(
    store: Store, job: NewJob, key_retention: Duration, limits: TenantQuota | None, error: OutcomeUnknown
) -> Receipt | HoldfastError:
    """Retry with a new id and the same key: inserts the job or finds the first one."""
    again = msgspec.structs.replace(job, id=new_job_id())

    async def work(tx: Tx) -> Sequence[InsertResult | HoldfastError]:
        if limits is None:
            return await insert_replacing(tx, [again], key_retention=key_retention)
        return await insert_each_within_quota(tx, [again], defaults=limits, key_retention=key_retention)

    try:
        (row,) = await store.run(work)
    except Unavailable:  # the first outcome is still unknown
        return error
    except HoldfastError as refused:
        return refused
    if isinstance(row, RateLimited):  # still unknown
        return error
    if isinstance(row, InsertResult) and row.id == job.id:  # the first commit succeeded
        return Receipt(row.id, row.created_at, replayed=False)
    return _answer(again, row)


async def _find_committed(store: Store, jobs: Sequence[NewJob]) -> dict[JobId, Job] | None:
    """Return the committed jobs by id; None if the database is unavailable."""
    if not jobs:
        return {}
    try:
        return {job.id: job for job in await store.read(lambda tx: tx.get([job.id for job in jobs]))}
    except Unavailable:
        return None


_FIELDS = ("/idempotency_key", "/unique")
"""JSON pointer of each kind of key."""


def _has_key(job: NewJob) -> bool:
    return job.idempotency_key is not None or job.unique is not None


def _keys(job: NewJob) -> list[tuple[str, int, str]]:
    keys = []
    if job.idempotency_key is not None:
        keys.append((job.tenant, 0, job.idempotency_key))
    if job.unique is not None:
        keys.append((job.tenant, 1, job.unique.key))
    return keys


def _split_repeated(jobs: Sequence[NewJob]) -> tuple[list[NewJob], list[NewJob]]:
    """Split off the jobs whose key occurs earlier; they must be inserted afterwards."""
    seen: set[tuple[str, int, str]] = set()
    first, later = [], []
    for job in jobs:
        keys = _keys(job)
        if seen.isdisjoint(keys):
            seen.update(keys)
            first.append(job)
        else:
            later.append(job)
    return first, later


def _repeated_keys(jobs: Sequence[NewJob]) -> dict[int, str]:
    """Return index and JSON pointer of each job whose key occurs earlier in the batch."""
    first, later = _split_repeated(jobs)
    taken = {key for job in first for key in _keys(job)}
    late = {job.id for job in later}
    return {
        index: next(_FIELDS[key[1]] for key in _keys(job) if key in taken)
        for index, job in enumerate(jobs)
        if job.id in late
    }
