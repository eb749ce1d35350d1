"""Change log: one small row per transaction that changed jobs, committed with it.

A row lists up to `MAX_LISTED_CHANGES` changes one by one. Larger sets are only counted, so that the size of a row does
not grow with the batch.
For finished attempts it includes mergeable histograms of wait and run times.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from holdfast.model.ids import JobId
from holdfast.model.job import Job, NewJob
from holdfast.model.state import Status
from holdfast.model.time import Instant
from holdfast.model.transition import Transition

MAX_LISTED_CHANGES = 20
"""Changes that a row lists one by one. SQL statements that write rows repeat this number."""

BUCKET_GROWTH = 1.2
"""Growth factor of histogram buckets; the error of a bucket midpoint is at most 10 %."""

Histogram = dict[int, int]
"""Number of durations per bucket; a bucket starts at `BUCKET_GROWTH ** bucket` microseconds."""

SeriesName = tuple[str, str, str]
"""Tenant, queue and type."""

REGISTERED, GONE, LOST, DRAINING = "registered", "gone", "lost", "draining"
"""Worker events: it registered, left, was removed because its lease expired, or is draining."""

DELETED = -1
"""Pseudo-status of a deleted job; not the code of any state."""

_log = math.log
_PER_LOG = 1 / math.log(BUCKET_GROWTH)
_WAS_RUNNING, _SUCCEEDED = Status.RUNNING, Status.SUCCEEDED
_READY, _RUNNING, _SCHEDULED = Status.READY.code, Status.RUNNING.code, Status.SCHEDULED.code


class JobChange(Struct, frozen=True, array_like=True, gc=False):
    """State of a job after a change."""

    id: JobId
    tenant: str
    queue: str
    type: str
    status: int
    attempt: int
    fence: int


class ChangeGroup(Struct, array_like=True, gc=False):
    """Number of jobs of one tenant, queue and type that entered a state."""

    tenant: str
    queue: str
    type: str
    status: int
    jobs: int = 0
    failed: int = 0
    """Number of jobs whose attempt failed."""
    wait: Histogram = {}
    """Wait times of finished attempts, from due to started."""
    run: Histogram = {}
    """Run times of finished attempts."""
    cost: int = 0
    """Total cost of finished attempts."""
    waited: int = 0
    """Longest wait of a finished attempt, in microseconds."""
    reaped: int = 0
    """Number of jobs reclaimed from workers whose lease expired."""


class WorkerChange(Struct, frozen=True, array_like=True, gc=False):
    """Registration, drain, departure or removal of a worker."""

    id: int
    event: str
    """`REGISTERED`, `DRAINING`, `GONE` or `LOST`; unknown events from newer nodes are passed on."""
    name: str = ""


class ChangeBody(Struct, omit_defaults=True):
    """Content of a row. Field names are short because there are many rows."""

    c: list[JobChange] = []
    g: list[ChangeGroup] = []
    """Counts: always for finished attempts, for other changes only if they are not listed."""
    w: list[WorkerChange] = []
    d: list[JobChange] = []
    """Deleted jobs, one by one; separate because no statistic counts them."""
    n: list[ChangeGroup] = []
    """Deleted jobs, counted if there are many."""
    new: bool = False
    """True if the transaction submitted the jobs."""

    def listed(self) -> Sequence[JobChange]:
        """Return the listed changes, including deleted jobs."""
        return self.c + self.d if self.d else self.c

    def unlisted(self) -> Sequence[ChangeGroup]:
        """Return the changes that are only counted."""
        return [*([] if self.c else self.g), *self.n]

    def groups(self) -> Sequence[ChangeGroup]:
        """Return counts of all changes."""
        if self.g:
            return self.g
        counts = Counter((change.tenant, change.queue, change.type, change.status) for change in self.c)
        return [ChangeGroup(*kind, jobs) for kind, jobs in counts.items()]

    def lost_workers(self) -> int:
        """Return the number of workers removed because their lease expired."""
        return sum(change.event == LOST for change in self.w)


class ChangeEntry(NamedTuple):
    """Row of the change log.

    `seq` is assigned before commit, so a lower one can appear after a higher one.
    """

    seq: int
    at: Instant
    body: ChangeBody


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(ChangeBody).decode


def bucket_of(span: int) -> int:
    """Return the histogram bucket of a duration in microseconds."""
    return int(_log(span) * _PER_LOG) if span > 1 else 0


def decode(stored: bytes | str) -> ChangeBody:
    """Decode the body of a row."""
    return _DECODE(stored)


def encode_submission(jobs: Sequence[NewJob], scheduled: Sequence[bool]) -> bytes:
    """Encode a submission; `scheduled` says of each job whether it is due later."""
    states = [_SCHEDULED if is_scheduled else _READY for is_scheduled in scheduled]
    if len(jobs) <= MAX_LISTED_CHANGES:
        changes = [
            JobChange(job.id, job.spec.tenant, job.spec.queue, job.spec.type, state, 0, 0)
            for job, state in zip(jobs, states, strict=True)
        ]
        return _ENCODE(ChangeBody(c=changes, new=True))
    return _counted(
        [(job.spec.tenant, job.spec.queue, job.spec.type, state) for job, state in zip(jobs, states, strict=True)],
        new=True,
    )


def encode_claim(jobs: Sequence[Job]) -> bytes:
    """Encode a claim."""
    if len(jobs) <= MAX_LISTED_CHANGES:
        return _ENCODE(
            ChangeBody(c=[JobChange(j.id, j.tenant, j.queue, j.type, _RUNNING, j.attempts, j.fence) for j in jobs])
        )
    return _counted([(job.tenant, job.queue, job.type, _RUNNING) for job in jobs])


def encode_transitions(transitions: Sequence[Transition], at: Instant) -> bytes:
    """Encode transitions. `at` is the end of the attempts, or 0 if unknown."""
    groups: dict[tuple[str, str, str, Status], ChangeGroup] = {}
    attempts = 0
    for transition in transitions:  # hot path: runs for every finished job
        job, to = transition.job, transition.to
        key = (job.tenant, job.queue, job.type, to)
        group = groups.get(key)
        if group is None:
            group = groups[key] = ChangeGroup(job.tenant, job.queue, job.type, to.code)
        group.jobs += 1
        if to is not _SUCCEEDED:
            group.failed += _failed(transition)
            group.reaped += transition.reaped
        started = job.started_at
        if transition.was is not _WAS_RUNNING or started is None:
            continue
        attempts += 1
        group.cost += job.cost
        due = job.scheduled_at
        waited = started - (job.created_at if due is None or due < job.created_at else due)
        group.waited = max(group.waited, waited)
        bucket = bucket_of(waited)
        group.wait[bucket] = group.wait.get(bucket, 0) + 1
        if at:
            bucket = bucket_of(at - started)
            group.run[bucket] = group.run.get(bucket, 0) + 1
    listed = [_change(transition) for transition in transitions] if len(transitions) <= MAX_LISTED_CHANGES else []
    return _ENCODE(ChangeBody(c=listed) if listed and not attempts else ChangeBody(c=listed, g=list(groups.values())))


def encode_promotions(rows: Sequence[tuple[JobId, str, str, str, int, int]]) -> bytes:
    """Encode promotions to ready; a row is (id, tenant, queue, type, attempts, fence)."""
    if len(rows) <= MAX_LISTED_CHANGES:
        return _ENCODE(ChangeBody(c=[JobChange(*row[:4], _READY, *row[4:]) for row in rows]))
    return _counted([(*row[1:4], _READY) for row in rows])


def encode_deletions(jobs: Sequence[Job]) -> bytes:
    """Encode deletions."""
    if len(jobs) <= MAX_LISTED_CHANGES:
        return _ENCODE(
            ChangeBody(d=[JobChange(j.id, j.tenant, j.queue, j.type, DELETED, j.attempts, j.fence) for j in jobs])
        )
    kinds = Counter((job.tenant, job.queue, job.type) for job in jobs)
    return _ENCODE(ChangeBody(n=[ChangeGroup(*kind, DELETED, count) for kind, count in kinds.items()]))


def encode_worker_changes(changes: Iterable[WorkerChange]) -> bytes:
    """Encode worker changes."""
    return _ENCODE(ChangeBody(w=list(changes)))


def _counted(kinds: Sequence[tuple[str, str, str, int]], *, new: bool = False) -> bytes:
    return _ENCODE(ChangeBody(g=[ChangeGroup(*kind, jobs) for kind, jobs in Counter(kinds).items()], new=new))


def _change(transition: Transition) -> JobChange:
    job = transition.job
    return JobChange(job.id, job.tenant, job.queue, job.type, transition.to.code, transition.attempts, transition.fence)


def _failed(transition: Transition) -> bool:
    """Return True if an attempt failed; a released, snoozed or cancelled one did not."""
    match transition.to:
        case Status.SUCCEEDED | Status.CANCELLED:
            return False
        case Status.RETRYING | Status.DEAD:
            return True
        case _:
            return transition.was is Status.RUNNING and transition.attempts == transition.job.attempts


def merge_histogram(into: Histogram, more: Mapping[int, int]) -> Histogram:
    """Add `more` to `into` and return it."""
    for bucket, count in more.items():
        into[bucket] = into.get(bucket, 0) + count
    return into
