"""Pure checks of `holdfast doctor`: from a snapshot to findings with their fixes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from holdfast.cli.render import span
from holdfast.policy.unknown_jobs import why_not_run
from holdfast.policy.unresponsive import describe_unresponsive

if TYPE_CHECKING:  # every node imports this module at startup and needs none of these
    from holdfast.sdk.models import Job, Queue, Worker

Level = Literal["ok", "doubtful", "wrong"]

MIN_REPORTED_RUN_S = 3_600.0
"""Run time after which a job without a timeout is reported as doubtful."""
MIN_REPORTED_DEAD_LETTERS = 100
"""Number of dead letters that is reported as doubtful."""


class Finding(Struct, frozen=True):
    """Result of one check."""

    check: str
    """Stable name of the check."""
    level: Level
    text: str
    fix: str | None = None
    """Command that fixes the problem; replace the words in capitals."""


class JobsSnapshot(Struct, frozen=True):
    """State of queues, workers and jobs that the checks need."""

    queues: "Sequence[Queue]"
    workers: "Sequence[Worker]"
    waiting: "Sequence[Job]"
    """For each queue and type with ready jobs, the job submitted last."""
    started: Mapping[str, int]
    """Attempts started within the last hour, by job type."""
    running: "Sequence[Job]"
    now: float
    """Time of the snapshot in seconds since 1970, by the clock of the service."""


def check_jobs(snapshot: JobsSnapshot, *, patience: float) -> Iterator[Finding]:
    """Check that jobs make progress; `patience` is how many seconds something may wait."""
    yield from _lost_workers(snapshot, patience)
    yield from _unresponsive(snapshot, patience)
    yield from _unknown_jobs(snapshot)
    yield from _paused(snapshot)
    unserved = list(_unserved(snapshot, patience))
    yield from unserved or [Finding("workers", "ok", _describe_workers(snapshot))]
    yield from _unknown_types(snapshot, patience)
    for job in snapshot.running:
        ran = 0.0 if job.started_at is None else snapshot.now - job.started_at.timestamp()
        if job.timeout is None and ran > MIN_REPORTED_RUN_S:
            yield Finding(
                "long jobs", "doubtful",
                f"job {job.id} ({job.type}) has been running for {span(ran)} and has no timeout",
                f"holdfast jobs cancel {job.id}",
            )  # fmt: skip
    dead = sum(queue.statuses.dead for queue in snapshot.queues)
    if dead >= MIN_REPORTED_DEAD_LETTERS:
        yield Finding("dead letters", "doubtful", f"there are {dead:,} dead letters", "holdfast dead groups")


def _describe_workers(snapshot: JobsSnapshot) -> str:
    alive = [worker for worker in snapshot.workers if worker.alive]
    slots = sum(worker.slots for worker in alive)
    silent = sum(worker.unresponsive_since is not None for worker in alive)
    unresponsive = f"; {silent} of them not responding" if silent else ""
    return f"{len(alive)} live, with {slots:,} slots{unresponsive}" if alive else "none, and no jobs are waiting"


def _lost_workers(snapshot: JobsSnapshot, patience: float) -> Iterator[Finding]:
    lost = [
        worker
        for worker in snapshot.workers
        if not worker.alive and worker.running and _expired_for(worker, snapshot.now) > patience
    ]
    if lost:
        jobs = sum(worker.running for worker in lost)
        names = ", ".join(worker.name or worker.id for worker in lost[:3])
        yield Finding(
            "stuck jobs", "wrong",
            f"{jobs:,} running jobs are held by lost workers ({names}), and no node releases them: "
            "a running 'holdfast serve' or 'holdfast work' would",
            "holdfast doctor --sweep",
        )  # fmt: skip
    else:
        yield Finding("stuck jobs", "ok", "no job is held by a lost worker")


def _unresponsive(snapshot: JobsSnapshot, patience: float) -> Iterator[Finding]:
    """Find live workers that do not respond, so that the jobs that they hold make no progress."""
    for worker in snapshot.workers:
        if not worker.alive or worker.unresponsive_since is None:
            continue
        age = snapshot.now - worker.unresponsive_since.timestamp()
        level: Level = "wrong" if worker.blocked_by is None or age >= patience else "doubtful"
        advice = (
            "its node kills and replaces it after HOLDFAST_WORKER_SILENCE_SECONDS"
            if worker.blocked_by is None
            else "declare the handler with 'def', so that it runs in a thread, or with isolation=\"process\""
        )
        held = "1 job" if worker.running == 1 else f"{worker.running:,} jobs"
        yield Finding(
            "unresponsive workers", level,
            f"worker {worker.name or worker.id}, which holds {held}, has not responded for "
            f"{span(max(0.0, age))}: {describe_unresponsive(worker.blocked_by)}; {advice}",
        )  # fmt: skip


def _unknown_jobs(snapshot: JobsSnapshot) -> Iterator[Finding]:
    """Find jobs that a live worker holds and probably does not run."""
    alive = {worker.id: worker for worker in snapshot.workers if worker.alive}
    for job in snapshot.running:
        worker = alive.get(job.worker or "")
        if worker is None or job.started_at is None:
            continue
        age = snapshot.now - job.started_at.timestamp()
        doubt = why_not_run(age, job.timeout, slots=worker.slots, held=worker.running)
        if doubt is not None:
            yield Finding(
                "unknown jobs", "wrong",
                f"worker {worker.name or worker.id} probably does not run job {job.id}, which it holds: {doubt}; the "
                "database may have lost its outcome in a failover",
                f"holdfast jobs cancel {job.id} && holdfast jobs retry {job.id}",
            )  # fmt: skip
            return  # one is enough: they have the same cause


def _expired_for(worker: "Worker", now: float) -> float:
    return now - worker.lease_until.timestamp()


def _paused(snapshot: JobsSnapshot) -> Iterator[Finding]:
    for queue in snapshot.queues:
        if queue.paused:
            reason = f" ({queue.reason})" if queue.reason else ""
            backlog = f", with {queue.statuses.ready:,} ready" if queue.statuses.ready else ""
            text = f"queue {queue.name!r} is paused{reason}{backlog}"
            if queue.reason:  # on purpose, so it is no problem
                yield Finding("paused queues", "ok", text)
                continue
            level: Level = "wrong" if queue.statuses.ready and queue.until is None else "doubtful"
            yield Finding("paused queues", level, text, f"holdfast queues resume {queue.name}")


def _unserved(snapshot: JobsSnapshot, patience: float) -> Iterator[Finding]:
    """Find queues with waiting jobs that no live worker serves."""
    alive = [worker for worker in snapshot.workers if worker.alive]
    waiting = [queue for queue in snapshot.queues if queue.statuses.ready and not queue.paused]
    waiting = [queue for queue in waiting if (queue.oldest_wait or 0.0) >= patience]
    if waiting and not alive:
        jobs = sum(queue.statuses.ready for queue in waiting)
        yield Finding("workers", "wrong", f"{jobs:,} jobs are ready, and there is no live worker", "holdfast work APP")
        return
    served = {name for worker in alive for name in _queues(worker)}
    for queue in waiting:
        if queue.name not in served:
            yield Finding(
                "workers", "wrong",
                f"{queue.statuses.ready:,} jobs are ready in queue {queue.name!r}, and no live worker serves it",
                f"holdfast work APP --queues {queue.name}",
            )  # fmt: skip


def _unknown_types(snapshot: JobsSnapshot, patience: float) -> Iterator[Finding]:
    """Find job types of which none starts, although workers of their queue have free slots."""
    queues = {queue.name: queue for queue in snapshot.queues}
    for job in snapshot.waiting:
        queue = queues.get(job.queue)
        responsive = [w for w in snapshot.workers if w.alive and w.unresponsive_since is None]
        free = [w for w in responsive if job.queue in _queues(w) and w.running < w.slots]
        due = max(job.created_at, job.scheduled_at or job.created_at).timestamp()
        if queue is None or queue.paused or not free or snapshot.now - due < patience or snapshot.started.get(job.type):
            continue
        yield Finding(
            "handlers", "wrong",
            f"jobs of type {job.type!r} wait in queue {job.queue!r}, whose workers have free slots, and none started "
            "within the last hour: no live worker has a handler for it, perhaps because its module is not imported",
            f"holdfast work APP --queues {job.queue} --include MODULE",
        )  # fmt: skip


def _queues(worker: "Worker") -> list[str]:
    return [entry.partition(":")[0] for entry in worker.queues]
