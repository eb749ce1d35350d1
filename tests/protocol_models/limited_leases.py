"""The leases of some jobs under a limit on how many run at once, small enough that every interleaving can be tried.

As in `lease_protocol`: each move is one transaction, or one half of what a broken protocol does in two; leases run out,
workers die, and answers get lost at any moment. What is new is a count of the slots in use: reserved by the claim that
starts a job, given back by whatever ends that run: a report, a cancellation, or the reaper.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol_models.explore import Explored, explore
from tests.protocol_models.lease_protocol import TERMINAL, Status


class Broken(enum.Flag):
    """A rule that the protocol breaks."""

    NOTHING = 0
    GIVE_BACK_UNFENCED = enum.auto()
    """A report that is refused gives back all the same."""
    GIVE_BACK_AGAIN = enum.auto()
    """A report whose answer was lost gives back again when it is repeated."""
    GIVE_BACK_TWICE = enum.auto()
    """A report gives back by what it says and by what became of the job."""
    GIVE_BACK_APART = enum.auto()
    """A report gives back after its commit, if its worker still lives."""
    REAP_FORGETS = enum.auto()
    """The reaper puts jobs back and gives nothing back."""
    REAP_GIVES_BACK_UNSEEN = enum.auto()
    """The reaper gives back what it saw held earlier, whether it may still put the job back or not."""
    CANCEL_FORGETS = enum.auto()
    """Who cancels a job that runs gives nothing back."""
    CANCEL_GIVES_BACK_ALWAYS = enum.auto()
    """Who cancels a job gives back, whether it ran or not."""
    LOOK_APART = enum.auto()
    """A claim goes by the room that it saw before, without a lock."""
    CLAIM_FIRST_UNCHECKED = enum.auto()
    """A claim takes jobs first and counts them last, whatever the room is by then."""


class Job(NamedTuple):
    """The row. `leased`: the lease of its holder lives, by the database's clock."""

    status: Status = Status.READY
    fence: int = 0
    attempts: int = 0
    leased: bool = False


class Doing(enum.StrEnum):
    """Where a worker is in its program."""

    NOTHING = "nothing"
    LOOKED = "saw room"
    BEGUN = "begun"
    SETTLED = "report committed, slot to be given back"
    SUCCESS_AGAIN = "success reported, answer lost"
    FAILURE_AGAIN = "failure reported, answer lost"


class Worker(NamedTuple):
    """What a worker believes: it may be long out of date."""

    doing: Doing = Doing.NOTHING
    job: int = 0
    fence: int = 0


IDLE = Worker()


class World(NamedTuple):
    """Everything there is."""

    jobs: tuple[Job, ...]
    workers: tuple[Worker, ...]
    used: int = 0
    """Slots in use, as the row of the limit has it."""
    scanned: tuple[int, int] | None = None
    """Job and token of an expired lease that the reaper saw and is about to act on."""

    @property
    def running(self) -> int:
        return sum(job.status is Status.RUNNING for job in self.jobs)


class Size(NamedTuple):
    """How much of everything there is."""

    jobs: int = 2
    workers: int = 2
    limit: int = 1
    attempts: int = 2


def check(size: Size, broken: Broken = Broken.NOTHING) -> Explored[World]:
    """Try every interleaving."""
    protocol = Protocol(size, broken)
    start = World((Job(),) * size.jobs, (IDLE,) * size.workers)
    return explore(start, protocol.moves, fault_in=protocol.fault_in, ended=done)


def done(world: World) -> bool:
    """Whether all jobs came to their end, and nothing is held."""
    return all(job.status in TERMINAL for job in world.jobs) and world.used == 0


class Protocol:
    """Which moves there are, and what must never be."""

    def __init__(self, size: Size, broken: Broken) -> None:
        self._size = size
        self._broken = broken

    def fault_in(self, world: World) -> str:
        """What is wrong in this state."""
        if world.running > self._size.limit:
            return "S16: more run than may"
        about_to = sum(worker.doing is Doing.SETTLED for worker in world.workers)
        if world.used > world.running + about_to:
            return "P18: a slot is held for nobody"
        return ""

    def moves(self, world: World) -> Iterator[tuple[str, World]]:
        """Everything that may happen next."""
        for i, worker in enumerate(world.workers):
            for name, after in self._worker_moves(world, i, worker):
                yield f"{name}{i}", after
        yield from self._reaper_moves(world)
        for j, job in enumerate(world.jobs):
            if job.status is Status.RUNNING and job.leased:
                yield f"expire {j}", _job(world, j, job._replace(leased=False))
            if job.status not in TERMINAL:
                yield f"cancel {j}", self._cancelled(world, j, job)

    def _worker_moves(self, world: World, i: int, worker: Worker) -> Iterator[tuple[str, World]]:
        room = world.used < self._size.limit
        match worker.doing:
            case Doing.NOTHING:
                if Broken.LOOK_APART in self._broken:
                    if room:
                        yield "look", _worker(world, i, Worker(Doing.LOOKED))
                elif room or Broken.CLAIM_FIRST_UNCHECKED in self._broken:
                    yield from self._claims(world, i)
            case Doing.LOOKED:
                yield from self._claims(world, i)
            case Doing.BEGUN:
                yield "die", _worker(world, i, IDLE)
                for name, report in (("settle", Doing.SUCCESS_AGAIN), ("fail", Doing.FAILURE_AGAIN)):
                    after = self._reported(world, worker, report)
                    apart = Broken.GIVE_BACK_APART in self._broken and after.running < world.running
                    yield name, _worker(after, i, Worker(Doing.SETTLED) if apart else IDLE)
                    if not apart:
                        yield f"{name}, lost", _worker(after, i, worker._replace(doing=report))
            case Doing.SETTLED:
                yield "die", _worker(world, i, IDLE)
                yield "give back", _worker(world._replace(used=world.used - 1), i, IDLE)
            case _:
                yield "again", _worker(self._reported(world, worker, worker.doing, again=True), i, IDLE)

    def _claims(self, world: World, i: int) -> Iterator[tuple[str, World]]:
        """One transaction: the room is tested, the job taken and the slot counted, or nothing of it."""
        for j, job in enumerate(world.jobs):
            if job.status is Status.READY:
                held = Job(Status.RUNNING, job.fence + 1, job.attempts + 1, leased=True)
                after = _job(world, j, held)._replace(used=world.used + 1)
                yield f"claim {j} by ", _worker(after, i, Worker(Doing.BEGUN, j, held.fence))

    def _reported(self, world: World, worker: Worker, report: Doing, *, again: bool = False) -> World:
        """Apply a report if it may be applied, and give back what the job held; else nothing."""
        job = world.jobs[worker.job]
        if job.status is not Status.RUNNING or job.fence != worker.fence:
            unfenced = Broken.GIVE_BACK_UNFENCED in self._broken or (again and Broken.GIVE_BACK_AGAIN in self._broken)
            return world._replace(used=world.used - 1) if unfenced and world.used else world
        ended = Status.SUCCEEDED if report is Doing.SUCCESS_AGAIN else self._next(job)
        after = _job(world, worker.job, job._replace(status=ended, leased=False))
        if Broken.GIVE_BACK_APART in self._broken:
            return after
        slots = 2 if Broken.GIVE_BACK_TWICE in self._broken else 1
        return after._replace(used=after.used - slots)

    def _next(self, job: Job) -> Status:
        return Status.READY if job.attempts < self._size.attempts else Status.DEAD

    def _reaper_moves(self, world: World) -> Iterator[tuple[str, World]]:
        """It looks, and then it acts on what it saw: in between anything may happen."""
        if world.scanned is None:
            for j, job in enumerate(world.jobs):
                if job.status is Status.RUNNING and not job.leased:
                    yield f"scan {j}", world._replace(scanned=(j, job.fence))
            return
        j, fence = world.scanned
        job, after = world.jobs[j], world._replace(scanned=None)
        if job.status is not Status.RUNNING or job.fence != fence or job.leased:
            unseen = Broken.REAP_GIVES_BACK_UNSEEN in self._broken and world.used
            yield "pass by", after._replace(used=after.used - 1) if unseen else after
            return
        back = _job(after, j, job._replace(status=self._next(job), leased=False))
        yield "reap", back if Broken.REAP_FORGETS in self._broken else back._replace(used=back.used - 1)

    def _cancelled(self, world: World, j: int, job: Job) -> World:
        after = _job(world, j, job._replace(status=Status.CANCELLED, leased=False))
        held = job.status is Status.RUNNING
        if Broken.CANCEL_FORGETS in self._broken:
            held = False
        if Broken.CANCEL_GIVES_BACK_ALWAYS in self._broken and world.used:
            held = True
        return after._replace(used=after.used - held)


def _job(world: World, j: int, job: Job) -> World:
    return world._replace(jobs=(*world.jobs[:j], job, *world.jobs[j + 1 :]))


def _worker(world: World, i: int, worker: Worker) -> World:
    return world._replace(workers=(*world.workers[:i], worker, *world.workers[i + 1 :]))
