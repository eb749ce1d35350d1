"""Insert jobs and return receipts, even if the connection breaks during the commit."""

from collections.abc import Container, Sequence
from typing import NamedTuple

import msgspec

from holdfast.engine.submitting.quotas import check_quotas, record_usage
from holdfast.engine.submitting.receipts import Receipt
from holdfast.engine.submitting.unique import insert_replacing
from holdfast.errors import (
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
from holdfast.model.job import InsertResult, Job, NewJob
from holdfast.model.state import Status
from holdfast.model.time import Duration
from holdfast.policy.quotas import TenantQuota
from holdfast.store.port.store import Store, Tx


class InsertRules(NamedTuple):
    """Rules that apply to a transaction that inserts jobs."""

    key_retention: Duration
    """Lifetime of idempotency keys."""
    default_quota: TenantQuota | None = None
    """Quota of tenants that have none of their own; None: no tenant of the jobs is limited."""


async def insert_each(store: Store, jobs: Sequence[NewJob], rules: InsertRules) -> list[Receipt | HoldfastError]:
    """Insert independent jobs in few transactions; return each one's receipt or error."""
    if rules.default_quota is None and not any(map(_has_key, jobs)):
        return await _insert_group(store, jobs, rules, single=True)
    results: dict[JobId, Receipt | HoldfastError] = {}
    left: Sequence[NewJob] = jobs
    while left:  # a job whose key occurs twice is inserted after the first one
        group, left = _split_duplicates(left)
        receipts = await _insert_group(store, group, rules, single=False)
        results |= {job.id: receipt for job, receipt in zip(group, receipts, strict=True)}
    return [results[job.id] for job in jobs]


async def insert_batch(store: Store, jobs: Sequence[NewJob], rules: InsertRules) -> list[Receipt]:
    """Insert all jobs in one transaction or none; raises `InvalidBatch` with faults by index."""
    if duplicates := _find_duplicates(jobs):
        raise InvalidBatch({i: Invalid("duplicate key in this batch", pointer=key) for i, key in duplicates.items()})

    single = rules.default_quota is None and not any(map(_has_key, jobs))
    decided: list[Receipt] = []
    try:
        return await _insert_all(store, jobs, rules, single=single, decided=decided)
    except OutcomeUnknown as error:
        return await _resolve_batch(store, jobs, rules, decided, error)


async def _insert_all(
    store: Store,
    jobs: Sequence[NewJob],
    rules: InsertRules,
    *,
    single: bool,
    decided: list[Receipt],
    tried: Container[JobId] = (),
) -> list[Receipt]:
    """Insert all jobs in one transaction; raise if one of them is rejected.

    `single` says that one statement suffices. `decided` gets the receipts, so that they are known even if the reply to
    the commit is lost. `tried` has the ids of an earlier try with an unknown outcome.
    """

    async def work(tx: Tx) -> list[Receipt] | HoldfastError:
        decided.clear()  # a transaction may be repeated
        rejections, rows = await _insert(tx, jobs, rules, atomic=True)
        if rejections:
            return rejections[0]  # and commit: the usage has new backlog counts, which are expensive to repeat
        results = [_receipt_for(job, row, tried) for job, row in zip(jobs, rows, strict=True)]
        if faults := {i: result for i, result in enumerate(results) if isinstance(result, HoldfastError)}:
            raise InvalidBatch(faults)
        decided.extend(result for result in results if isinstance(result, Receipt))
        return list(decided)

    receipts = await (store.single(work) if single else store.run(work))
    if isinstance(receipts, HoldfastError):
        raise receipts
    return receipts


async def _insert_group(
    store: Store, jobs: Sequence[NewJob], rules: InsertRules, *, single: bool
) -> list[Receipt | HoldfastError]:
    """Insert jobs without duplicate keys in one transaction (`single`: of one statement)."""
    try:
        rejections, rows = await (store.single if single else store.run)(lambda tx: _insert(tx, jobs, rules))
    except Rejected as error:
        if len(jobs) == 1:
            return [error]
        # One bad row fails its transaction: retry each job alone.
        return [(await _insert_group(store, [job], rules, single=single))[0] for job in jobs]
    except OutcomeUnknown as error:
        return await _resolve_each(store, jobs, rules, error)
    except HoldfastError as error:
        return [error] * len(jobs)
    inserted = iter(rows)
    return [
        rejections[index] if index in rejections else _receipt_for(job, next(inserted))
        for index, job in enumerate(jobs)
    ]


async def _insert(
    tx: Tx, jobs: Sequence[NewJob], rules: InsertRules, *, atomic: bool = False
) -> tuple[dict[int, HoldfastError], list[InsertResult]]:
    """Check quotas, insert the accepted jobs and record their usage.

    Returns the rejections by index and the rows of the accepted jobs.
    """
    if rules.default_quota is None:
        return {}, await insert_replacing(tx, jobs, key_retention=rules.key_retention)
    rejections, usages = await check_quotas(tx, jobs, rules.default_quota, atomic=atomic)
    accepted = [job for index, job in enumerate(jobs) if index not in rejections]
    rows = await insert_replacing(tx, accepted, key_retention=rules.key_retention) if accepted else []
    await record_usage(tx, usages, accepted, rows)
    return rejections, rows


def _receipt_for(job: NewJob, row: InsertResult, tried: Container[JobId] = ()) -> Receipt | HoldfastError:
    """Return the receipt of an inserted row, or the error if it is a duplicate.

    `tried` has the ids of an earlier try with an unknown outcome. A row with one of them shows that it was committed.
    """
    if row.id in tried:
        return Receipt(row.id, row.created_at, replayed=False)
    match row.repeats:
        case None:
            return Receipt(row.id, row.created_at, replayed=False)
        case "idempotency_key" if not row.same_body:
            return IdempotencyMismatch(
                f"the idempotency key {job.spec.idempotency_key!r} was used before for another job ({row.id}): "
                "use a new key for a new job, or repeat the same submission",
                pointer="/idempotency_key",
            )
        case "unique" if job.unique is not None and job.unique.on_conflict == "reject":
            return DuplicateJob(
                f"unique job {row.id} already exists: use that job, or submit again later", job_id=str(row.id)
            )
        case "unique" if row.holder is not None:
            why = "is running" if row.holder is Status.RUNNING else f"has ended ({row.holder}) but keeps its unique key"
            return DuplicateJob(
                f"job {row.id} {why}, so it cannot be replaced: only a waiting job can be; submit again later",
                job_id=str(row.id),
            )
        case _:
            return Receipt(row.id, row.created_at, replayed=True)


async def _resolve_batch(
    store: Store, jobs: Sequence[NewJob], rules: InsertRules, decided: Sequence[Receipt], error: OutcomeUnknown
) -> list[Receipt]:
    """Resolve a lost commit reply: look up the new jobs, or repeat a batch with keys."""
    new = [job for job, receipt in zip(jobs, decided, strict=True) if not receipt.replayed] if decided else list(jobs)
    found = await _find_committed(store, new)
    if found is not None and all(job.id in found for job in new):  # one transaction: all jobs or none
        at = {job.id: job.created_at for job in found.values()}
        return list(decided) or [Receipt(job.id, at[job.id], replayed=False) for job in jobs]
    if found is not None and all(map(_has_key, jobs)):
        again = [msgspec.structs.replace(job, id=new_job_id()) for job in jobs]
        try:
            tried = {job.id for job in jobs}
            return await _insert_all(store, again, rules, single=False, decided=[], tried=tried)
        except (Unavailable, RateLimited):  # the first outcome is still unknown
            raise error from None
    raise OutcomeUnknown(
        "the connection broke during the commit, and the jobs are not in the database (yet): "
        "repeat with idempotency keys to be sure"
    ) from error


async def _resolve_each(
    store: Store, jobs: Sequence[NewJob], rules: InsertRules, error: OutcomeUnknown
) -> list[Receipt | HoldfastError]:
    """Resolve a lost commit reply: look up the jobs; repeat missing ones that have a key."""
    found = await _find_committed(store, jobs)
    if found is None:
        return [error] * len(jobs)
    results: list[Receipt | HoldfastError] = []
    for job in jobs:
        if job.id in found:
            results.append(Receipt(job.id, found[job.id].created_at, replayed=False))
        else:
            results.append(await _insert_again(store, job, rules, error) if _has_key(job) else error)
    return results


async def _insert_again(
    store: Store, job: NewJob, rules: InsertRules, error: OutcomeUnknown
) -> Receipt | HoldfastError:
    """Retry with a new id and the same key: inserts the job or finds the first one."""
    again = msgspec.structs.replace(job, id=new_job_id())
    try:
        rejections, rows = await store.run(lambda tx: _insert(tx, [again], rules))
    except Unavailable:  # the first outcome is still unknown
        return error
    except HoldfastError as rejection:
        return rejection
    if rejections:
        return error if isinstance(rejections[0], RateLimited) else rejections[0]  # if rate limited: still unknown
    return _receipt_for(again, rows[0], (job.id,))


async def _find_committed(store: Store, jobs: Sequence[NewJob]) -> dict[JobId, Job] | None:
    """Return the committed jobs by id; None if the database is unavailable."""
    if not jobs:
        return {}
    try:
        return {job.id: job for job in await store.read(lambda tx: tx.get([job.id for job in jobs]))}
    except Unavailable:
        return None


_POINTERS = ("/idempotency_key", "/unique")
"""JSON pointer of each kind of key."""


def _has_key(job: NewJob) -> bool:
    return job.spec.idempotency_key is not None or job.unique is not None


def _keys(job: NewJob) -> list[tuple[str, int, str]]:
    """Return (tenant, kind, key) for each key of a job; the kind is an index of `_POINTERS`."""
    keys = []
    if job.spec.idempotency_key is not None:
        keys.append((job.spec.tenant, 0, job.spec.idempotency_key))
    if job.unique is not None:
        keys.append((job.spec.tenant, 1, job.unique.key))
    return keys


def _split_duplicates(jobs: Sequence[NewJob]) -> tuple[list[NewJob], list[NewJob]]:
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


def _find_duplicates(jobs: Sequence[NewJob]) -> dict[int, str]:
    """Return index and JSON pointer of each job whose key occurs earlier in the batch."""
    first, later = _split_duplicates(jobs)
    taken = {key for job in first for key in _keys(job)}
    late = {job.id for job in later}
    return {
        index: next(_POINTERS[key[1]] for key in _keys(job) if key in taken)
        for index, job in enumerate(jobs)
        if job.id in late
    }
