"""The feed: a small row for each transaction that changed jobs, written with the change.

A row names what changed, one by one where it is little, counted where it is much: its cost does not grow with a batch.
Of attempts that ended it also tells how long they waited and ran, as histograms that can be added up.
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
"""Up to how many changes a row lists one by one. Statements that write a row themselves know this number too."""

GROWTH = 1.2
"""By how much each bucket of a histogram is wider than the one before it: its middle is off by a tenth at the most."""

Histogram = dict[int, int]
"""How many spans fell into which bucket: from `GROWTH ** bucket` microseconds up to the next."""

SeriesName = tuple[str, str, str]
"""Tenant, queue and type."""

REGISTERED, GONE, LOST, DRAINING = "registered", "gone", "lost", "draining"
"""What a row tells of a worker: it came, it left, it was struck because its lease ran out."""

DELETED = -1
"""The status of a job that is told to have been deleted: no code of a state."""

_log = math.log
_PER_LOG = 1 / math.log(GROWTH)
_WAS_RUNNING, _SUCCEEDED = Status.RUNNING, Status.SUCCEEDED
_READY, _RUNNING, _SCHEDULED = Status.READY.code, Status.RUNNING.code, Status.SCHEDULED.code


class JobChange(Struct, frozen=True, array_like=True, gc=False):
    """A job as a change left it."""

    id: JobId
    tenant: str
    queue: str
    type: str
    status: int
    attempt: int
    fence: int


class ChangeGroup(Struct, array_like=True, gc=False):
    """How many jobs of one kind came into a state."""

    tenant: str
    queue: str
    type: str
    status: int
    jobs: int = 0
    failed: int = 0
    """Of how many of them an attempt had failed."""
    wait: Histogram = {}
    """Of attempts that ended: from when they were due until they started."""
    run: Histogram = {}
    """Of attempts that ended: from start to end."""
    cost: int = 0
    """Of attempts that ended, together."""
    waited: int = 0
    """Of attempts that ended: the longest wait, in microseconds."""
    reaped: int = 0
    """How many of them were taken back from a worker whose lease ran out."""


class WorkerChange(Struct, frozen=True, array_like=True, gc=False):
    """A worker came, went, or was struck because its lease ran out."""

    id: int
    event: str
    """`REGISTERED`, `DRAINING`, `GONE` or `LOST`; others, told by a newer node, are passed on."""
    name: str = ""


class ChangeBody(Struct, omit_defaults=True):
    """What a row tells. The names are short: there are many rows."""

    c: list[JobChange] = []
    g: list[ChangeGroup] = []
    """Of attempts that ended always; of other changes only where they are not listed."""
    w: list[WorkerChange] = []
    d: list[JobChange] = []
    """Jobs that were deleted, one by one. Apart from the others: no figure counts them."""
    n: list[ChangeGroup] = []
    """The same, counted where they are many."""
    new: bool = False
    """Whether the jobs were submitted by it."""

    def listed(self) -> Sequence[JobChange]:
        """What changed and is named, deleted jobs among it."""
        return self.c + self.d if self.d else self.c

    def unlisted(self) -> Sequence[ChangeGroup]:
        """What changed and is only counted."""
        return [*([] if self.c else self.g), *self.n]

    def groups(self) -> Sequence[ChangeGroup]:
        """All that changed, counted."""
        if self.g:
            return self.g
        counted = Counter((each.tenant, each.queue, each.type, each.status) for each in self.c)
        return [ChangeGroup(*kind, jobs) for kind, jobs in counted.items()]

    def lost(self) -> int:
        """How many workers were struck because their lease ran out."""
        return sum(each.event == LOST for each in self.w)


class ChangeEntry(NamedTuple):
    """A row of the feed. Numbers are drawn before the commit: a lower one can appear after a higher one."""

    seq: int
    at: Instant
    body: ChangeBody


_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(ChangeBody).decode


def bucket_of(span: int) -> int:
    """The bucket that a span in microseconds belongs to."""
    return int(_log(span) * _PER_LOG) if span > 1 else 0


def read(stored: bytes | str) -> ChangeBody:
    """A row's body."""
    return _DECODE(stored)


def of_new(jobs: Sequence[NewJob], waiting: Sequence[bool]) -> bytes:
    """Jobs were submitted; which of them wait for their time."""
    if len(jobs) <= MAX_LISTED_CHANGES:
        return _ENCODE(
            ChangeBody(
                c=[
                    JobChange(job.id, job.tenant, job.queue, job.type, _SCHEDULED if later else _READY, 0, 0)
                    for job, later in zip(jobs, waiting, strict=True)
                ],
                new=True,
            )
        )
    return _counted(
        [(j.tenant, j.queue, j.type, _SCHEDULED if later else _READY) for j, later in zip(jobs, waiting, strict=True)],
        new=True,
    )


def of_claimed(jobs: Sequence[Job]) -> bytes:
    """Jobs were claimed."""
    if len(jobs) <= MAX_LISTED_CHANGES:
        return _ENCODE(
            ChangeBody(c=[JobChange(j.id, j.tenant, j.queue, j.type, _RUNNING, j.attempts, j.fence) for j in jobs])
        )
    return _counted([(job.tenant, job.queue, job.type, _RUNNING) for job in jobs])


def of_moves(moves: Sequence[Transition], at: Instant) -> bytes:
    """Jobs were moved. `at`: when attempts ended, if any did; 0 if nobody knows."""
    groups: dict[tuple[str, str, str, Status], ChangeGroup] = {}
    attempts = 0
    for move in moves:  # run for every job that ends: little is called here
        job, to = move.job, move.to
        key = (job.tenant, job.queue, job.type, to)
        group = groups.get(key)
        if group is None:
            group = groups[key] = ChangeGroup(job.tenant, job.queue, job.type, to.code)
        group.jobs += 1
        if to is not _SUCCEEDED:
            group.failed += _failed(move)
            group.reaped += move.reaped
        started = job.started_at
        if move.was is not _WAS_RUNNING or started is None:
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
    listed = [_change(move) for move in moves] if len(moves) <= MAX_LISTED_CHANGES else []
    return _ENCODE(ChangeBody(c=listed) if listed and not attempts else ChangeBody(c=listed, g=list(groups.values())))


def of_ready(rows: Sequence[tuple[JobId, str, str, str, int, int]]) -> bytes:
    """Jobs became ready, their time having come: (id, tenant, queue, type, attempts, fence)."""
    if len(rows) <= MAX_LISTED_CHANGES:
        return _ENCODE(ChangeBody(c=[JobChange(*row[:4], _READY, *row[4:]) for row in rows]))
    return _counted([(*row[1:4], _READY) for row in rows])


def of_deleted(jobs: Sequence[Job]) -> bytes:
    """Jobs were deleted, which were as given."""
    if len(jobs) <= MAX_LISTED_CHANGES:
        return _ENCODE(
            ChangeBody(d=[JobChange(j.id, j.tenant, j.queue, j.type, DELETED, j.attempts, j.fence) for j in jobs])
        )
    kinds = Counter((job.tenant, job.queue, job.type) for job in jobs)
    return _ENCODE(ChangeBody(n=[ChangeGroup(*kind, DELETED, count) for kind, count in kinds.items()]))


def of_workers(changes: Iterable[WorkerChange]) -> bytes:
    """Workers came or went."""
    return _ENCODE(ChangeBody(w=list(changes)))


def _counted(kinds: Sequence[tuple[str, str, str, int]], *, new: bool = False) -> bytes:
    return _ENCODE(ChangeBody(g=[ChangeGroup(*kind, jobs) for kind, jobs in Counter(kinds).items()], new=new))


def _change(move: Transition) -> JobChange:
    job = move.job
    return JobChange(job.id, job.tenant, job.queue, job.type, move.to.code, move.attempts, move.fence)


def _failed(move: Transition) -> bool:
    """Whether an attempt failed. What is handed back, snoozed or cancelled did not."""
    match move.to:
        case Status.SUCCEEDED | Status.CANCELLED:
            return False
        case Status.RETRYING | Status.DEAD:
            return True
        case _:
            return move.was is Status.RUNNING and move.attempts == move.job.attempts


def merged(into: Histogram, more: Mapping[int, int]) -> Histogram:
    """Two histograms as one: `into`, with `more` added."""
    for bucket, count in more.items():
        into[bucket] = into.get(bucket, 0) + count
    return into
