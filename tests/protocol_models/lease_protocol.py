"""The lease protocol of one job, small enough that every interleaving can be tried.

A job row, some workers, a reaper, a person who cancels and replays. Each move is one transaction, or one half of what a
broken protocol does in two. A lease may run out at any moment: that covers a paused process, a slow network, a wrong
clock and a partition alike. A worker may die at any moment, and the answer to any report may be lost, in which case
the worker reports again.

`Broken` names the rules one can get wrong. Nothing broken, no fault is reachable; anything broken, one is, except for
the two rules that cover for each other.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol_models.explore import Explored, explore


class Broken(enum.Flag):
    """A rule that the protocol breaks."""

    NOTHING = 0
    SETTLE_BY_ID = enum.auto()
    """A report is applied to whatever is not dead or cancelled."""
    SETTLE_BY_STATE = enum.auto()
    """A report is applied to whatever is running, whoever runs it."""
    REAP_BY_ID = enum.auto()
    """The reaper puts back what it saw earlier, without looking again."""
    REAP_BY_STATE = enum.auto()
    """The reaper puts back what is running, though it may be another lease by now."""
    REAP_TRUSTS_ITS_SCAN = enum.auto()
    """The reaper does not test the expiry again."""
    RENEW_BY_JOB = enum.auto()
    """A renewal prolongs the lease of the job, whoever holds it."""
    RENEW_REVIVES = enum.auto()
    """A renewal prolongs a lease that ran out."""
    STEP_UNFENCED = enum.auto()
    """A step's effect is committed without a look at the token."""
    GUARD_FIRST = enum.auto()
    """A step's guard row is committed before its effect."""
    EFFECT_FIRST = enum.auto()
    """A step's effect is committed before its guard row."""
    COUNT_ON_FAILURE = enum.auto()
    """An attempt is counted when it fails, not when it is claimed."""
    CANCEL_BY_FLAG = enum.auto()
    """A cancellation is a note on the side that the claim does not read."""
    TOKEN_IS_THE_ATTEMPT = enum.auto()
    """The attempt's number serves as fencing token, so that a refunded attempt hands out a token twice."""
    HAND_BACK_UNCAPPED = enum.auto()
    """A job may be handed back as often as one likes."""
    REPLAY_RESETS_THE_TOKEN = enum.auto()
    """A new generation counts its tokens anew."""
    REPORT_AGAIN_BY_STATE = enum.auto()
    """A report whose answer was lost is repeated without its token."""


class Status(enum.StrEnum):
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.SUCCEEDED, Status.DEAD, Status.CANCELLED})


class Job(NamedTuple):
    """The row. `leased`: the lease of its holder lives, by the database's clock."""

    status: Status = Status.READY
    fence: int = 0
    attempts: int = 0
    releases: int = 0
    generation: int = 0
    leased: bool = False
    holder: int = -1
    """Who really holds it: for the observer, no rule looks at it."""


class Doing(enum.StrEnum):
    """Where a worker is in its program."""

    NOTHING = "nothing"
    BEGUN = "begun"
    GUARDED = "guard row written, effect to come"
    ACTED = "effect done, guard row to come"
    STEPPED = "step done, success to be reported"
    SUCCESS_AGAIN = "success reported, answer lost"
    FAILURE_AGAIN = "failure reported, answer lost"
    HAND_BACK_AGAIN = "handed back, answer lost"


class Worker(NamedTuple):
    """What a worker believes: it may be long out of date."""

    doing: Doing = Doing.NOTHING
    fence: int = 0


IDLE = Worker()


class World(NamedTuple):
    """Everything there is, and what an observer outside has counted."""

    job: Job
    workers: tuple[Worker, ...]
    scanned: int | None = None
    """The token of an expired lease that the reaper saw and is about to act on."""
    guarded: bool = False
    """The step's guard row exists."""
    effects: int = 0
    spent: int = 0
    """Starts in this generation, without those that were handed back."""
    ended: Status | None = None
    """How this generation ended, as somebody was told."""
    cancel_noted: bool = False
    fault: str = ""


class Size(NamedTuple):
    """How much of everything there is."""

    workers: int = 2
    attempts: int = 3
    releases: int = 0
    replays: int = 0
    answers_get_lost: bool = False


def check(size: Size, broken: Broken = Broken.NOTHING) -> Explored[World]:
    """Try every interleaving."""
    protocol = Protocol(size, broken)
    start = World(Job(), (IDLE,) * size.workers)
    return explore(start, protocol.moves, fault_in=protocol.fault_in, ended=lambda world: world.job.status in TERMINAL)


class Protocol:
    """Which moves there are, and what must never be."""

    def __init__(self, size: Size, broken: Broken) -> None:
        self._size = size
        self._broken = broken

    def fault_in(self, world: World) -> str:
        """What is wrong in this state."""
        if world.fault:
            return world.fault
        if world.ended is not None and world.job.status is not world.ended:
            return "S4: it ended, and then it moved"
        if world.spent > self._size.attempts:
            return "S8: more starts than attempts"
        if world.effects > 1:
            return "S11: the effect was doubled"
        if world.job.status is Status.SUCCEEDED and world.effects != 1:
            return "S11: it succeeded without its effect"
        return ""

    def moves(self, world: World) -> Iterator[tuple[str, World]]:
        """Everything that may happen next."""
        for i, worker in enumerate(world.workers):
            for name, after in self._worker_moves(world, i, worker):
                yield f"{name}{i}", after
        yield from self._reaper_moves(world)
        yield from self._outside_moves(world)

    # A worker

    def _worker_moves(self, world: World, i: int, worker: Worker) -> Iterator[tuple[str, World]]:
        if worker.doing is Doing.NOTHING:
            if world.job.status is Status.READY:
                yield "claim", self._claimed(world, i)
            return
        yield "die", _now(world, i, IDLE)
        yield from self._renewals(world, worker)
        match worker.doing:
            case Doing.BEGUN:
                yield from self._steps(world, i, worker)
                yield from self._reports(world, i, worker, Doing.FAILURE_AGAIN)
                if self._size.releases:
                    yield from self._reports(world, i, worker, Doing.HAND_BACK_AGAIN)
            case Doing.GUARDED:
                yield "act", _now(world, i, worker, Doing.STEPPED)._replace(effects=world.effects + 1)
            case Doing.ACTED:
                yield "guard", _now(world, i, worker, Doing.STEPPED)._replace(guarded=True)
            case Doing.STEPPED:
                yield from self._reports(world, i, worker, Doing.SUCCESS_AGAIN)
            case _:
                yield "again", self._reported(_now(world, i, IDLE), i, worker, worker.doing, again=True)

    def _claimed(self, world: World, i: int) -> World:
        """Raises the token and, rightly, counts the attempt."""
        job = world.job
        attempts = job.attempts if Broken.COUNT_ON_FAILURE in self._broken else job.attempts + 1
        fence = attempts if Broken.TOKEN_IS_THE_ATTEMPT in self._broken else job.fence + 1
        held = job._replace(status=Status.RUNNING, fence=fence, attempts=attempts, leased=True, holder=i)
        fault = "S17: it started after it was cancelled" if world.cancel_noted else ""
        after = world._replace(job=held, spent=world.spent + 1, fault=fault)
        return _now(after, i, Worker(Doing.BEGUN, fence))

    def _renewals(self, world: World, worker: Worker) -> Iterator[tuple[str, World]]:
        """Only those that change something."""
        job, broken = world.job, self._broken
        mine = _holds(job, worker)
        if job.status is not Status.RUNNING or (mine and job.leased):
            return
        if mine and broken & (Broken.RENEW_REVIVES | Broken.RENEW_BY_JOB):
            yield "renew", world._replace(job=job._replace(leased=True))
        if not mine and Broken.RENEW_BY_JOB in broken:
            renewed = world._replace(job=job._replace(leased=True))
            yield "renew", renewed._replace(fault="S7: a stale worker prolonged another's lease")

    def _steps(self, world: World, i: int, worker: Worker) -> Iterator[tuple[str, World]]:
        """A step with an effect in the same database: token, guard and effect in one transaction."""
        broken = self._broken
        if Broken.GUARD_FIRST in broken:
            after = world._replace(guarded=True)
            yield "guard", _now(after, i, worker, Doing.STEPPED if world.guarded else Doing.GUARDED)
        elif Broken.EFFECT_FIRST in broken:
            after = world if world.guarded else world._replace(effects=world.effects + 1)
            yield "act", _now(after, i, worker, Doing.STEPPED if world.guarded else Doing.ACTED)
        elif not _holds(world.job, worker) and Broken.STEP_UNFENCED not in broken:
            yield "fenced off", _now(world, i, IDLE)
        elif world.guarded:
            yield "skip", _now(world, i, worker, Doing.STEPPED)
        else:
            late = "S17: an effect after the end" if world.job.status in TERMINAL else ""
            after = world._replace(guarded=True, effects=world.effects + 1, fault=late)
            yield "step", _now(after, i, worker, Doing.STEPPED)

    def _reports(self, world: World, i: int, worker: Worker, report: Doing) -> Iterator[tuple[str, World]]:
        name = {Doing.SUCCESS_AGAIN: "settle", Doing.FAILURE_AGAIN: "fail", Doing.HAND_BACK_AGAIN: "hand back"}[report]
        after = self._reported(world, i, worker, report)
        yield name, _now(after, i, IDLE)
        if self._size.answers_get_lost:
            yield f"{name}, lost", _now(after, i, worker, report)

    def _reported(self, world: World, i: int, worker: Worker, report: Doing, *, again: bool = False) -> World:
        """Apply a report if it may be applied; the worker learns which."""
        job = world.job
        allowed = _holds(job, worker)
        if Broken.SETTLE_BY_ID in self._broken and report is Doing.SUCCESS_AGAIN:
            allowed = job.status not in {Status.DEAD, Status.CANCELLED}
        if Broken.SETTLE_BY_STATE in self._broken or (again and Broken.REPORT_AGAIN_BY_STATE in self._broken):
            allowed = job.status is Status.RUNNING
        if not allowed:
            return world
        really = job.status is Status.RUNNING and job.holder == i
        after = world if really else world._replace(fault="S7: a stale report was applied")
        if report is Doing.SUCCESS_AGAIN:
            return _ended(after, Status.SUCCEEDED)
        if report is Doing.FAILURE_AGAIN:
            return self._put_back(after)
        return self._handed_back(after)

    def _handed_back(self, world: World) -> World:
        """Ready again with its attempt refunded, but not for ever."""
        job = world.job
        if job.releases >= self._size.releases and Broken.HAND_BACK_UNCAPPED not in self._broken:
            return _ended(world, Status.DEAD)
        back = job._replace(
            status=Status.READY, attempts=job.attempts - 1, releases=job.releases + 1, leased=False
        )  # the token stays: whoever is next gets a higher one
        fault = world.fault or ("S8: handed back too often" if back.releases > self._size.releases else "")
        return world._replace(job=back, spent=world.spent - 1, fault=fault)

    def _put_back(self, world: World) -> World:
        """Ready again, or dead when its attempts are spent."""
        job = world.job
        attempts = job.attempts + 1 if Broken.COUNT_ON_FAILURE in self._broken else job.attempts
        if attempts >= self._size.attempts:
            return _ended(world, Status.DEAD)
        return world._replace(job=job._replace(status=Status.READY, attempts=attempts, leased=False))

    # The reaper and the world outside

    def _reaper_moves(self, world: World) -> Iterator[tuple[str, World]]:
        """It looks, and then it acts on what it saw: in between anything may happen."""
        job, broken = world.job, self._broken
        if world.scanned is None:
            if job.status is Status.RUNNING and not job.leased:
                yield "scan", world._replace(scanned=job.fence)
            return
        seen = job.status is Status.RUNNING and job.fence == world.scanned
        may = seen and (not job.leased or Broken.REAP_TRUSTS_ITS_SCAN in broken)
        if Broken.REAP_BY_STATE in broken:
            may = job.status is Status.RUNNING
        if Broken.REAP_BY_ID in broken:
            may = True
        after = world._replace(scanned=None)
        if not may:
            yield "pass by", after
            return
        if job.status is Status.RUNNING and job.leased:
            after = after._replace(fault="L4: a live lease was reaped")
        if Broken.COUNT_ON_FAILURE in broken:
            yield "reap", after._replace(job=job._replace(status=Status.READY, leased=False))
        else:
            yield "reap", self._put_back(after)

    def _outside_moves(self, world: World) -> Iterator[tuple[str, World]]:
        job = world.job
        if job.status is Status.RUNNING and job.leased:
            yield "expire", world._replace(job=job._replace(leased=False))
        if job.status not in TERMINAL:
            if Broken.CANCEL_BY_FLAG in self._broken:
                yield "cancel", world._replace(cancel_noted=True)
            else:
                yield "cancel", _ended(world, Status.CANCELLED)
        if job.status in {Status.DEAD, Status.CANCELLED} and job.generation < self._size.replays:
            fence = 0 if Broken.REPLAY_RESETS_THE_TOKEN in self._broken else job.fence
            yield "replay", world._replace(job=Job(fence=fence, generation=job.generation + 1), spent=0, ended=None)


def _holds(job: Job, worker: Worker) -> bool:
    """Whether the row still is as this worker claimed it."""
    return job.status is Status.RUNNING and job.fence == worker.fence


def _ended(world: World, status: Status) -> World:
    """The job ends; had it ended before, that stays what somebody was told."""
    return world._replace(job=world.job._replace(status=status, leased=False), ended=world.ended or status)


def _now(world: World, i: int, worker: Worker, doing: Doing | None = None) -> World:
    """A worker goes on to something else."""
    if doing is not None:
        worker = worker._replace(doing=doing)
    return world._replace(workers=(*world.workers[:i], worker, *world.workers[i + 1 :]))
