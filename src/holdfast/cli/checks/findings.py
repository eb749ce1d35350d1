"""What `holdfast doctor` thinks of what it sees: pure, from answers and settings to findings with their fix."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from holdfast.cli.render import span

if TYPE_CHECKING:  # every node looks at its database at the start, and needs none of these for it
    from holdfast.sdk.models import Job, Queue, Worker

Level = Literal["ok", "doubtful", "wrong"]

LONG = 3_600.0
"""Seconds after which a job that runs without a timeout is doubtful."""
MANY_DEAD = 100


class Finding(Struct, frozen=True):
    """One thing that was looked at."""

    check: str
    """What, in a word that stays the same."""
    level: Level
    text: str
    fix: str | None = None
    """The command that mends it; words in capitals are for the reader to fill in."""


class Seen(Struct, frozen=True):
    """What a service tells of its jobs."""

    queues: "Sequence[Queue]"
    workers: "Sequence[Worker]"
    waiting: "Sequence[Job]"
    """Of each queue and type with ready jobs, the one submitted last."""
    started: Mapping[str, int]
    """Of each type, attempts within the last hour."""
    running: "Sequence[Job]"
    now: float
    """When this was seen, in seconds since 1970, by the service's clock as far as it is known."""


def of_jobs(seen: Seen, *, patience: float) -> Iterator[Finding]:
    """Whether work flows; `patience`: seconds after which something that waits is worth a word."""
    yield from _lost_workers(seen, patience)
    yield from _paused(seen)
    unserved = list(_unserved(seen, patience))
    yield from unserved or [Finding("workers", "ok", _working(seen))]
    yield from _unknown_types(seen, patience)
    for job in seen.running:
        ran = 0.0 if job.started_at is None else seen.now - job.started_at.timestamp()
        if job.timeout is None and ran > LONG:
            yield Finding(
                "long jobs", "doubtful", f"job {job.id} ({job.type}) runs for {span(ran)} and has no timeout",
                f"holdfast jobs cancel {job.id}",
            )  # fmt: skip
    dead = sum(queue.statuses.dead for queue in seen.queues)
    if dead >= MANY_DEAD:
        yield Finding("dead letters", "doubtful", f"there are {dead:,} dead letters", "holdfast dead groups")


def _working(seen: Seen) -> str:
    alive = [worker for worker in seen.workers if worker.alive]
    slots = sum(worker.slots for worker in alive)
    return f"{len(alive)} live, with {slots:,} slots" if alive else "none, and nothing waits for one"


def _lost_workers(seen: Seen, patience: float) -> Iterator[Finding]:
    lost = [each for each in seen.workers if not each.alive and each.running and _over(each, seen.now) > patience]
    held = sum(worker.running for worker in lost)
    if lost:
        names = ", ".join(worker.name or worker.id for worker in lost[:3])
        yield Finding(
            "stuck jobs", "wrong",
            f"{held:,} running, held by workers that are gone ({names}), and no node puts them back: "
            "a running 'holdfast serve' or 'holdfast work' would",
            "holdfast doctor --sweep",
        )  # fmt: skip
    else:
        yield Finding("stuck jobs", "ok", "none is held by a worker that is gone")


def _over(worker: "Worker", now: float) -> float:
    return now - worker.lease_until.timestamp()


def _paused(seen: Seen) -> Iterator[Finding]:
    for queue in seen.queues:
        if queue.paused:
            why = f" ({queue.reason})" if queue.reason else ""
            waits = f", with {queue.statuses.ready:,} ready" if queue.statuses.ready else ""
            level: Level = "wrong" if queue.statuses.ready and queue.until is None else "doubtful"
            yield Finding(
                "paused queues",
                level,
                f"queue {queue.name!r} is paused{why}{waits}",
                f"holdfast queues resume {queue.name}",
            )


def _unserved(seen: Seen, patience: float) -> Iterator[Finding]:
    """Queues in which jobs wait that no live worker takes from."""
    alive = [worker for worker in seen.workers if worker.alive]
    waiting = [each for each in seen.queues if each.statuses.ready and not each.paused]
    waiting = [each for each in waiting if (each.oldest_wait or 0.0) >= patience]
    if waiting and not alive:
        jobs = sum(queue.statuses.ready for queue in waiting)
        yield Finding("workers", "wrong", f"{jobs:,} ready, and there is no live worker", "holdfast work APP")
        return
    served = {name for worker in alive for name in _queues(worker)}
    for queue in waiting:
        if queue.name not in served:
            yield Finding(
                "workers", "wrong",
                f"{queue.statuses.ready:,} ready in queue {queue.name!r}, which no live worker takes from",
                f"holdfast work APP --queues {queue.name}",
            )  # fmt: skip


def _unknown_types(seen: Seen, patience: float) -> Iterator[Finding]:
    """Types of which nothing starts, though workers of their queue have room."""
    queues = {queue.name: queue for queue in seen.queues}
    for job in seen.waiting:
        queue = queues.get(job.queue)
        room = [w for w in seen.workers if w.alive and job.queue in _queues(w) and w.running < w.slots]
        due = max(job.created_at, job.scheduled_at or job.created_at).timestamp()
        if queue is None or queue.paused or not room or seen.now - due < patience or seen.started.get(job.type):
            continue
        yield Finding(
            "handlers", "wrong",
            f"jobs of type {job.type!r} wait in queue {job.queue!r}, whose workers have room, and none was started "
            "within an hour: no live worker has a handler for it",
            f"holdfast work APP --queues {job.queue}",
        )  # fmt: skip


def _queues(worker: "Worker") -> list[str]:
    return [each.partition(":")[0] for each in worker.queues]
