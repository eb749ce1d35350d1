"""Model of the lease protocol of one job, small enough to check every interleaving.

The model has a job row, workers, a reaper, and a user who cancels and replays. Each action is one transaction, or one
half of what a broken protocol does in two. A lease may expire at any time, which covers a paused process, a slow
network, a wrong clock and a partition. A worker may die at any time, and the response to any report may be lost; then
the worker reports again.

`Broken` lists the rules that an implementation can violate. Without a broken rule no fault is reachable; with one, a
fault is reachable, except for two rules that cover for each other.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol_models.explore import Exploration, explore


class Broken(enum.Flag):
    """Rule that the modelled protocol violates."""

    NOTHING = 0
    SETTLE_BY_ID = enum.auto()
    """A report is applied to any job that is not dead or cancelled."""
    SETTLE_BY_STATE = enum.auto()
    """A report is applied to a running job, even if another worker runs it."""
    REAP_BY_ID = enum.auto()
    """The reaper resets a job that it scanned earlier, without checking it again."""
    REAP_BY_STATE = enum.auto()
    """The reaper resets a running job, even if it has another lease by now."""
    REAP_TRUSTS_ITS_SCAN = enum.auto()
    """The reaper does not test the expiry again."""
    RENEW_BY_JOB = enum.auto()
    """A renewal extends the lease of the job, even if another worker holds it."""
    RENEW_REVIVES = enum.auto()
    """A renewal extends an expired lease."""
    STEP_UNFENCED = enum.auto()
    """A step's effect is committed without checking the fencing token."""
    GUARD_FIRST = enum.auto()
    """A step's guard row is committed before its effect."""
    EFFECT_FIRST = enum.auto()
    """A step's effect is committed before its guard row."""
    COUNT_ON_FAILURE = enum.auto()
    """An attempt is counted when it fails, not when it is claimed."""
    CANCEL_BY_FLAG = enum.auto()
    """A cancellation sets a flag that claims do not read."""
    TOKEN_IS_THE_ATTEMPT = enum.auto()
    """The attempt number is the fencing token, so that a refunded attempt issues a token twice."""
    RELEASE_UNCAPPED = enum.auto()
    """A job may be released any number of times."""
    REPLAY_RESETS_THE_TOKEN = enum.auto()
    """A new generation starts with token 0 again."""
    REPORT_AGAIN_BY_STATE = enum.auto()
    """A report whose response was lost is repeated without its token."""


class Status(enum.StrEnum):
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.SUCCEEDED, Status.DEAD, Status.CANCELLED})


class Job(NamedTuple):
    """Job row. `leased`: the lease is alive, by the database's clock."""

    status: Status = Status.READY
    fence: int = 0
    attempts: int = 0
    releases: int = 0
    generation: int = 0
    leased: bool = False
    holder: int = -1
    """Actual holder, for the observer only; no rule reads it."""


class Phase(enum.StrEnum):
    """Phase of a worker's program."""

    NOTHING = "nothing"
    STARTED = "started"
    GUARDED = "guard row written, effect pending"
    ACTED = "effect done, guard row pending"
    STEPPED = "step done, report pending"
    SUCCESS_AGAIN = "success reported, response lost"
    FAILURE_AGAIN = "failure reported, response lost"
    RELEASE_AGAIN = "released, response lost"


class Worker(NamedTuple):
    """A worker's view, which may be outdated."""

    phase: Phase = Phase.NOTHING
    fence: int = 0


IDLE = Worker()


class World(NamedTuple):
    """State of the whole system, and the counts of an external observer."""

    job: Job
    workers: tuple[Worker, ...]
    scanned: int | None = None
    """Token of the expired lease that the reaper scanned and is about to reap."""
    guarded: bool = False
    """The step's guard row exists."""
    effects: int = 0
    spent: int = 0
    """Starts in this generation, without released ones."""
    ended: Status | None = None
    """Reported final status of this generation."""
    cancel_flag: bool = False
    fault: str = ""


class Size(NamedTuple):
    """Bounds of the model."""

    workers: int = 2
    attempts: int = 3
    releases: int = 0
    replays: int = 0
    lossy_responses: bool = False


def check(size: Size, broken: Broken = Broken.NOTHING) -> Exploration[World]:
    """Check every interleaving."""
    protocol = Protocol(size, broken)
    start = World(Job(), (IDLE,) * size.workers)
    return explore(
        start, protocol.actions, fault_in=protocol.fault_in, is_final=lambda world: world.job.status in TERMINAL
    )


class Protocol:
    """Actions and invariants of the protocol."""

    def __init__(self, size: Size, broken: Broken) -> None:
        self._size = size
        self._broken = broken

    def fault_in(self, world: World) -> str:
        """Return the invariant that this state violates; empty if none."""
        if world.fault:
            return world.fault
        if world.ended is not None and world.job.status is not world.ended:
            return "S4: a finished job changed its status"
        if world.spent > self._size.attempts:
            return "S8: more starts than attempts"
        if world.effects > 1:
            return "S11: the effect occurred twice"
        if world.job.status is Status.SUCCEEDED and world.effects != 1:
            return "S11: the job succeeded without its effect"
        return ""

    def actions(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield every action that is possible in this state, and its result."""
        for i, worker in enumerate(world.workers):
            for name, after in self._worker_actions(world, i, worker):
                yield f"{name}{i}", after
        yield from self._reaper_actions(world)
        yield from self._external_actions(world)

    # A worker

    def _worker_actions(self, world: World, i: int, worker: Worker) -> Iterator[tuple[str, World]]:
        if worker.phase is Phase.NOTHING:
            if world.job.status is Status.READY:
                yield "claim", self._claimed(world, i)
            return
        yield "die", _set_worker(world, i, IDLE)
        yield from self._renewals(world, worker)
        match worker.phase:
            case Phase.STARTED:
                yield from self._steps(world, i, worker)
                yield from self._reports(world, i, worker, Phase.FAILURE_AGAIN)
                if self._size.releases:
                    yield from self._reports(world, i, worker, Phase.RELEASE_AGAIN)
            case Phase.GUARDED:
                yield "act", _set_worker(world, i, worker, Phase.STEPPED)._replace(effects=world.effects + 1)
            case Phase.ACTED:
                yield "guard", _set_worker(world, i, worker, Phase.STEPPED)._replace(guarded=True)
            case Phase.STEPPED:
                yield from self._reports(world, i, worker, Phase.SUCCESS_AGAIN)
            case _:
                yield "again", self._reported(_set_worker(world, i, IDLE), i, worker, worker.phase, again=True)

    def _claimed(self, world: World, i: int) -> World:
        """Claim the job: raise the token and, unless broken, count the attempt."""
        job = world.job
        attempts = job.attempts if Broken.COUNT_ON_FAILURE in self._broken else job.attempts + 1
        fence = attempts if Broken.TOKEN_IS_THE_ATTEMPT in self._broken else job.fence + 1
        held = job._replace(status=Status.RUNNING, fence=fence, attempts=attempts, leased=True, holder=i)
        fault = "S17: the job started after it was cancelled" if world.cancel_flag else ""
        after = world._replace(job=held, spent=world.spent + 1, fault=fault)
        return _set_worker(after, i, Worker(Phase.STARTED, fence))

    def _renewals(self, world: World, worker: Worker) -> Iterator[tuple[str, World]]:
        """Yield renewals that change something."""
        job, broken = world.job, self._broken
        mine = _holds(job, worker)
        if job.status is not Status.RUNNING or (mine and job.leased):
            return
        if mine and broken & (Broken.RENEW_REVIVES | Broken.RENEW_BY_JOB):
            yield "renew", world._replace(job=job._replace(leased=True))
        if not mine and Broken.RENEW_BY_JOB in broken:
            renewed = world._replace(job=job._replace(leased=True))
            yield "renew", renewed._replace(fault="S7: a stale worker extended another worker's lease")

    def _steps(self, world: World, i: int, worker: Worker) -> Iterator[tuple[str, World]]:
        """Run a step whose effect is in the same database: token, guard and effect in one transaction."""
        broken = self._broken
        if Broken.GUARD_FIRST in broken:
            after = world._replace(guarded=True)
            yield "guard", _set_worker(after, i, worker, Phase.STEPPED if world.guarded else Phase.GUARDED)
        elif Broken.EFFECT_FIRST in broken:
            after = world if world.guarded else world._replace(effects=world.effects + 1)
            yield "act", _set_worker(after, i, worker, Phase.STEPPED if world.guarded else Phase.ACTED)
        elif not _holds(world.job, worker) and Broken.STEP_UNFENCED not in broken:
            yield "fenced off", _set_worker(world, i, IDLE)
        elif world.guarded:
            yield "skip", _set_worker(world, i, worker, Phase.STEPPED)
        else:
            late = "S17: an effect after the job finished" if world.job.status in TERMINAL else ""
            after = world._replace(guarded=True, effects=world.effects + 1, fault=late)
            yield "step", _set_worker(after, i, worker, Phase.STEPPED)

    def _reports(self, world: World, i: int, worker: Worker, report: Phase) -> Iterator[tuple[str, World]]:
        name = {Phase.SUCCESS_AGAIN: "settle", Phase.FAILURE_AGAIN: "fail", Phase.RELEASE_AGAIN: "release"}[report]
        after = self._reported(world, i, worker, report)
        yield name, _set_worker(after, i, IDLE)
        if self._size.lossy_responses:
            yield f"{name}, lost", _set_worker(after, i, worker, report)

    def _reported(self, world: World, i: int, worker: Worker, report: Phase, *, again: bool = False) -> World:
        """Apply a report if it is allowed."""
        job = world.job
        allowed = _holds(job, worker)
        if Broken.SETTLE_BY_ID in self._broken and report is Phase.SUCCESS_AGAIN:
            allowed = job.status not in {Status.DEAD, Status.CANCELLED}
        if Broken.SETTLE_BY_STATE in self._broken or (again and Broken.REPORT_AGAIN_BY_STATE in self._broken):
            allowed = job.status is Status.RUNNING
        if not allowed:
            return world
        is_holder = job.status is Status.RUNNING and job.holder == i
        after = world if is_holder else world._replace(fault="S7: a stale report was applied")
        if report is Phase.SUCCESS_AGAIN:
            return _ended(after, Status.SUCCEEDED)
        if report is Phase.FAILURE_AGAIN:
            return self._reset(after)
        return self._released(after)

    def _released(self, world: World) -> World:
        """Make the job ready with its attempt refunded, or dead after too many releases."""
        job = world.job
        if job.releases >= self._size.releases and Broken.RELEASE_UNCAPPED not in self._broken:
            return _ended(world, Status.DEAD)
        back = job._replace(
            status=Status.READY, attempts=job.attempts - 1, releases=job.releases + 1, leased=False
        )  # keeps the token, so that the next claim gets a higher one
        fault = world.fault or ("S8: released too often" if back.releases > self._size.releases else "")
        return world._replace(job=back, spent=world.spent - 1, fault=fault)

    def _reset(self, world: World) -> World:
        """Make the job ready, or dead after its last attempt."""
        job = world.job
        attempts = job.attempts + 1 if Broken.COUNT_ON_FAILURE in self._broken else job.attempts
        if attempts >= self._size.attempts:
            return _ended(world, Status.DEAD)
        return world._replace(job=job._replace(status=Status.READY, attempts=attempts, leased=False))

    # Reaper, clock and user

    def _reaper_actions(self, world: World) -> Iterator[tuple[str, World]]:
        """Scan, then act on the result; any other action may happen in between."""
        job, broken = world.job, self._broken
        if world.scanned is None:
            if job.status is Status.RUNNING and not job.leased:
                yield "scan", world._replace(scanned=job.fence)
            return
        unchanged = job.status is Status.RUNNING and job.fence == world.scanned
        allowed = unchanged and (not job.leased or Broken.REAP_TRUSTS_ITS_SCAN in broken)
        if Broken.REAP_BY_STATE in broken:
            allowed = job.status is Status.RUNNING
        if Broken.REAP_BY_ID in broken:
            allowed = True
        after = world._replace(scanned=None)
        if not allowed:
            yield "skip", after
            return
        if job.status is Status.RUNNING and job.leased:
            after = after._replace(fault="L4: a live lease was reaped")
        if Broken.COUNT_ON_FAILURE in broken:
            yield "reap", after._replace(job=job._replace(status=Status.READY, leased=False))
        else:
            yield "reap", self._reset(after)

    def _external_actions(self, world: World) -> Iterator[tuple[str, World]]:
        job = world.job
        if job.status is Status.RUNNING and job.leased:
            yield "expire", world._replace(job=job._replace(leased=False))
        if job.status not in TERMINAL:
            if Broken.CANCEL_BY_FLAG in self._broken:
                yield "cancel", world._replace(cancel_flag=True)
            else:
                yield "cancel", _ended(world, Status.CANCELLED)
        if job.status in {Status.DEAD, Status.CANCELLED} and job.generation < self._size.replays:
            fence = 0 if Broken.REPLAY_RESETS_THE_TOKEN in self._broken else job.fence
            yield "replay", world._replace(job=Job(fence=fence, generation=job.generation + 1), spent=0, ended=None)


def _holds(job: Job, worker: Worker) -> bool:
    """Return True if the row is still as this worker claimed it."""
    return job.status is Status.RUNNING and job.fence == worker.fence


def _ended(world: World, status: Status) -> World:
    """Finish the job; a status that was reported before stays the reported one."""
    return world._replace(job=world.job._replace(status=status, leased=False), ended=world.ended or status)


def _set_worker(world: World, i: int, worker: Worker, phase: Phase | None = None) -> World:
    """Return the world with another state of a worker."""
    if phase is not None:
        worker = worker._replace(phase=phase)
    return world._replace(workers=(*world.workers[:i], worker, *world.workers[i + 1 :]))
