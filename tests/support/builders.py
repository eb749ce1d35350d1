"""Builders of jobs and workers with sensible defaults, and transactions of tests."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from holdfast.engine.jobs.reap import reap
from holdfast.engine.jobs.settle import settle
from holdfast.errors import HoldfastError
from holdfast.model.ids import JobId, WorkerId, new_job_id, new_worker_id
from holdfast.model.job import InsertResult, Job, JobSpec, NewJob, RetryRule
from holdfast.model.lane import Lane, Share
from holdfast.model.outcome import Failed, Failure, Outcome, Report, Succeeded
from holdfast.model.time import Duration, days, seconds
from holdfast.model.transition import Transition
from holdfast.model.worker import WorkerInfo

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from holdfast.model.state import Status
    from holdfast.store.port.store import Store, Tx, Work

T = TypeVar("T")

LEASE = seconds(15)
KEY_RETENTION = days(7)
RETRY = RetryRule(base=seconds(1), cap=seconds(60), jitter=0.0)
MAIL = Lane("mail", "acme", 0)

_latest = itertools.accumulate(iter(lambda: time.time_ns() // 1_000_000, None), lambda last, now: max(last + 1, now))
"""Increasing milliseconds close to now, because scans rely on the time in an id."""


def a_job(queue: str = "mail", **changes: Any) -> NewJob:
    """Build a job that may run at once; later calls give higher ids."""
    defaults: dict[str, Any] = {"id": new_job_id(next(_latest)), "payload": b"{}", "max_attempts": 5}
    own = defaults | {name: changes.pop(name) for name in NewJob.__struct_fields__ if name in changes}
    return NewJob(spec=JobSpec(**({"type": "send", "tenant": "acme", "queue": queue} | changes)), **own)


def some_jobs(n: int, **changes: Any) -> list[NewJob]:
    """Build several equal jobs."""
    return [a_job(**changes) for _ in range(n)]


def a_worker(**changes: Any) -> WorkerInfo:
    """Build a worker with a new id."""
    defaults: dict[str, Any] = {
        "id": new_worker_id(),
        "name": "worker-1",
        "host": "host-1",
        "pid": 4711,
        "version": "0.0.1",
        "queues": "mail",
        "slots": 10,
    }
    return WorkerInfo(**(defaults | changes))


def error(message: str = "SMTP 421") -> Failed:
    """Build a failure that may be retried."""
    return Failed(Failure(kind="SmtpError", message=message))


def lane_of(job: NewJob | Job) -> Lane:
    """Return the lane of a job."""
    spec = job.spec if isinstance(job, NewJob) else job
    return Lane(spec.queue, spec.tenant, spec.priority)


def share(lane: Lane = MAIL, max_jobs: int = 1_000_000, floor: int = 0) -> Share:
    """Build a share, by default of the whole lane."""
    return Share(lane, max_jobs, floor)


def a_transition(job: Job, to: Status, **changes: Any) -> Transition:
    """Build a transition of a job, valid or not."""
    defaults: dict[str, Any] = {
        "id": job.id,
        "fence": job.fence,
        "was": job.status,
        "to": to,
        "worker": job.worker,
        "attempts": job.attempts,
        "job": job,
        "releases": job.releases,
        "generation": job.generation,
    }
    return Transition(**(defaults | changes))


def fields(job: Job, *names: str) -> tuple[Any, ...]:
    """Return some fields of a job."""
    return tuple(getattr(job, name) for name in names)


def as_dict(job: Job) -> dict[str, Any]:
    """Return all fields of a job."""
    return msgspec.structs.asdict(job)


class RolledBack(HoldfastError):
    """Raised in a transaction to roll it back."""


async def roll_back(store: Store, work: Work[object]) -> None:
    """Run the work in a transaction and roll it back."""

    async def whole(tx: Tx) -> None:
        await work(tx)
        raise RolledBack

    try:
        await store.run(whole)
    except RolledBack:
        return
    raise AssertionError("the transaction was not rolled back")


# Operations of tests on a store, each in its own transaction


async def put(store: Store, *jobs: NewJob, key_retention: Duration = KEY_RETENTION) -> list[InsertResult]:
    """Insert these jobs."""
    return await store.run(lambda tx: tx.insert(jobs, key_retention=key_retention))


async def enter(store: Store, lease: Duration = LEASE, **changes: Any) -> WorkerId:
    """Register a worker."""
    worker = a_worker(**changes)
    await store.run(lambda tx: tx.register(worker, lease))
    return worker.id


async def take(
    store: Store,
    worker: WorkerId,
    *shares: Share | Lane,
    limit: int = 1_000_000,
    types: Sequence[str] | None = None,
) -> list[Job]:
    """Claim jobs for a worker, by default from the lane of `a_job`."""
    requested = [share(each) if isinstance(each, Lane) else each for each in shares] or [share()]
    return await store.single(lambda tx: tx.claim(worker, requested, limit, types))


async def hold(store: Store, worker: WorkerId, n: int = 1, **changes: Any) -> list[Job]:
    """Insert jobs into a new lane and claim them for the worker; return them oldest first."""
    jobs = some_jobs(n, **({"queue": f"held-{next(_latest)}"} | changes))
    await put(store, *jobs)
    held = await take(store, worker, lane_of(jobs[0]))
    assert {job.id for job in held} == {job.id for job in jobs}
    return sorted(held, key=lambda job: job.id)


async def running(store: Store, **changes: Any) -> Job:
    """Return a running job of a new worker."""
    return (await hold(store, await enter(store), **changes))[0]


async def move(store: Store, *transitions: Transition) -> set[JobId]:
    """Apply transitions; return the jobs of those that took effect."""
    return await store.run(lambda tx: tx.apply(transitions))


async def report(store: Store, jobs: Job | Sequence[Job], outcome: Outcome | None = None) -> set[JobId]:
    """Settle jobs with an outcome, by default success."""
    settled = [jobs] if isinstance(jobs, Job) else jobs
    reports = [Report(job, outcome or Succeeded()) for job in settled]
    return await settle(store, reports, default=RETRY, rng=lambda: 0.5)


async def reap_once(store: Store) -> int:
    """Run one round of the reaper."""
    return await reap(store, default=RETRY, rng=lambda: 0.5)


async def reap_all(store: Store) -> int:
    """Run the reaper until it finds nothing."""
    total = 0
    while moved := await reap_once(store):
        total += moved
    return total


async def read(store: Store, job: JobId | NewJob | Job | InsertResult) -> Job:
    """Read a job, which must exist exactly once."""
    (found,) = await read_all(store, [job.id if isinstance(job, NewJob | Job | InsertResult) else job])
    return found


async def read_all(store: Store, ids: Collection[JobId]) -> list[Job]:
    """Read jobs, ordered by id."""
    found = await store.single(lambda tx: tx.get(ids))
    return sorted(found, key=lambda job: job.id)
