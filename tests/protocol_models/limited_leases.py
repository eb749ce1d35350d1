"""Model of job leases under a concurrency limit, small enough to check every interleaving.

As in `lease_protocol`, each action is one transaction, or one half of what a broken protocol does in two; leases
expire, workers die and responses get lost at any time. In addition, the limit counts the slots in use: the claim that
starts a job reserves one, and the report, cancellation or reap that ends the run releases it.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol_models.explore import Exploration, explore
from tests.protocol_models.lease_protocol import TERMINAL, Status


class Broken(enum.Flag):
    """Rule that the modelled protocol violates."""

    NOTHING = 0
    RELEASE_UNFENCED = enum.auto()
    """A rejected report releases a slot."""
    RELEASE_AGAIN = enum.auto()
    """A report whose response was lost releases a slot again when it is repeated."""
    RELEASE_TWICE = enum.auto()
    """A report releases a slot for the outcome and another one for the transition."""
    RELEASE_SEPARATELY = enum.auto()
    """A report releases the slot in a second transaction, which a dead worker never makes."""
    REAP_KEEPS_SLOT = enum.auto()
    """The reaper resets jobs without releasing their slots."""
    REAP_RELEASES_UNCHECKED = enum.auto()
    """The reaper releases the slot of a scanned job even if it may no longer reset the job."""
    CANCEL_KEEPS_SLOT = enum.auto()
    """The cancellation of a running job does not release its slot."""
    CANCEL_ALWAYS_RELEASES = enum.auto()
    """A cancellation releases a slot even if the job was not running."""
    CHECK_SEPARATELY = enum.auto()
    """A claim checks the capacity in an earlier transaction, without a lock."""
    CLAIM_UNCHECKED = enum.auto()
    """A claim takes jobs first and counts them last, without checking the capacity again."""


class Job(NamedTuple):
    """Job row. `leased`: the lease is alive, by the database's clock."""

    status: Status = Status.READY
    fence: int = 0
    attempts: int = 0
    leased: bool = False


class Phase(enum.StrEnum):
    """Phase of a worker's program."""

    NOTHING = "nothing"
    CHECKED = "saw capacity"
    STARTED = "started"
    SETTLED = "report committed, release of the slot pending"
    SUCCESS_AGAIN = "success reported, response lost"
    FAILURE_AGAIN = "failure reported, response lost"


class Worker(NamedTuple):
    """A worker's view, which may be outdated."""

    phase: Phase = Phase.NOTHING
    job: int = 0
    fence: int = 0


IDLE = Worker()


class World(NamedTuple):
    """State of the whole system."""

    jobs: tuple[Job, ...]
    workers: tuple[Worker, ...]
    used: int = 0
    """Slots in use, as stored in the limit's row."""
    scanned: tuple[int, int] | None = None
    """Job and token of the expired lease that the reaper scanned and is about to reap."""

    @property
    def running(self) -> int:
        return sum(job.status is Status.RUNNING for job in self.jobs)


class Size(NamedTuple):
    """Bounds of the model."""

    jobs: int = 2
    workers: int = 2
    limit: int = 1
    attempts: int = 2


def check(size: Size, broken: Broken = Broken.NOTHING) -> Exploration[World]:
    """Check every interleaving."""
    protocol = Protocol(size, broken)
    start = World((Job(),) * size.jobs, (IDLE,) * size.workers)
    return explore(start, protocol.actions, fault_in=protocol.fault_in, is_final=is_final)


def is_final(world: World) -> bool:
    """Return True if all jobs have finished and no slot is in use."""
    return all(job.status in TERMINAL for job in world.jobs) and world.used == 0


class Protocol:
    """Actions and invariants of the protocol."""

    def __init__(self, size: Size, broken: Broken) -> None:
        self._size = size
        self._broken = broken

    def fault_in(self, world: World) -> str:
        """Return the invariant that this state violates; empty if none."""
        if world.running > self._size.limit:
            return "S16: more jobs run than the limit allows"
        releasing = sum(worker.phase is Phase.SETTLED for worker in world.workers)
        if world.used > world.running + releasing:
            return "P18: a slot is in use without a running job"
        return ""

    def actions(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield every action that is possible in this state, and its result."""
        for i, worker in enumerate(world.workers):
            for name, after in self._worker_actions(world, i, worker):
                yield f"{name}{i}", after
        yield from self._reaper_actions(world)
        for j, job in enumerate(world.jobs):
            if job.status is Status.RUNNING and job.leased:
                yield f"expire {j}", _set_job(world, j, job._replace(leased=False))
            if job.status not in TERMINAL:
                yield f"cancel {j}", self._cancelled(world, j, job)

    def _worker_actions(self, world: World, i: int, worker: Worker) -> Iterator[tuple[str, World]]:
        room = world.used < self._size.limit
        match worker.phase:
            case Phase.NOTHING:
                if Broken.CHECK_SEPARATELY in self._broken:
                    if room:
                        yield "check", _set_worker(world, i, Worker(Phase.CHECKED))
                elif room or Broken.CLAIM_UNCHECKED in self._broken:
                    yield from self._claims(world, i)
            case Phase.CHECKED:
                yield from self._claims(world, i)
            case Phase.STARTED:
                yield "die", _set_worker(world, i, IDLE)
                for name, report in (("settle", Phase.SUCCESS_AGAIN), ("fail", Phase.FAILURE_AGAIN)):
                    after = self._reported(world, worker, report)
                    separately = Broken.RELEASE_SEPARATELY in self._broken and after.running < world.running
                    yield name, _set_worker(after, i, Worker(Phase.SETTLED) if separately else IDLE)
                    if not separately:
                        yield f"{name}, lost", _set_worker(after, i, worker._replace(phase=report))
            case Phase.SETTLED:
                yield "die", _set_worker(world, i, IDLE)
                yield "release", _set_worker(world._replace(used=world.used - 1), i, IDLE)
            case _:
                yield "again", _set_worker(self._reported(world, worker, worker.phase, again=True), i, IDLE)

    def _claims(self, world: World, i: int) -> Iterator[tuple[str, World]]:
        """Claim in one transaction: check the capacity, take the job and count the slot."""
        for j, job in enumerate(world.jobs):
            if job.status is Status.READY:
                held = Job(Status.RUNNING, job.fence + 1, job.attempts + 1, leased=True)
                after = _set_job(world, j, held)._replace(used=world.used + 1)
                yield f"claim {j} by ", _set_worker(after, i, Worker(Phase.STARTED, j, held.fence))

    def _reported(self, world: World, worker: Worker, report: Phase, *, again: bool = False) -> World:
        """Apply a report if it is allowed, and release the slot of the job."""
        job = world.jobs[worker.job]
        if job.status is not Status.RUNNING or job.fence != worker.fence:
            unfenced = Broken.RELEASE_UNFENCED in self._broken or (again and Broken.RELEASE_AGAIN in self._broken)
            return world._replace(used=world.used - 1) if unfenced and world.used else world
        ended = Status.SUCCEEDED if report is Phase.SUCCESS_AGAIN else self._next(job)
        after = _set_job(world, worker.job, job._replace(status=ended, leased=False))
        if Broken.RELEASE_SEPARATELY in self._broken:
            return after
        slots = 2 if Broken.RELEASE_TWICE in self._broken else 1
        return after._replace(used=after.used - slots)

    def _next(self, job: Job) -> Status:
        return Status.READY if job.attempts < self._size.attempts else Status.DEAD

    def _reaper_actions(self, world: World) -> Iterator[tuple[str, World]]:
        """Scan, then act on the result; any other action may happen in between."""
        if world.scanned is None:
            for j, job in enumerate(world.jobs):
                if job.status is Status.RUNNING and not job.leased:
                    yield f"scan {j}", world._replace(scanned=(j, job.fence))
            return
        j, fence = world.scanned
        job, after = world.jobs[j], world._replace(scanned=None)
        if job.status is not Status.RUNNING or job.fence != fence or job.leased:
            unchecked = Broken.REAP_RELEASES_UNCHECKED in self._broken and world.used
            yield "skip", after._replace(used=after.used - 1) if unchecked else after
            return
        reset = _set_job(after, j, job._replace(status=self._next(job), leased=False))
        yield "reap", reset if Broken.REAP_KEEPS_SLOT in self._broken else reset._replace(used=reset.used - 1)

    def _cancelled(self, world: World, j: int, job: Job) -> World:
        after = _set_job(world, j, job._replace(status=Status.CANCELLED, leased=False))
        held = job.status is Status.RUNNING
        if Broken.CANCEL_KEEPS_SLOT in self._broken:
            held = False
        if Broken.CANCEL_ALWAYS_RELEASES in self._broken and world.used:
            held = True
        return after._replace(used=after.used - held)


def _set_job(world: World, j: int, job: Job) -> World:
    return world._replace(jobs=(*world.jobs[:j], job, *world.jobs[j + 1 :]))


def _set_worker(world: World, i: int, worker: Worker) -> World:
    return world._replace(workers=(*world.workers[:i], worker, *world.workers[i + 1 :]))
