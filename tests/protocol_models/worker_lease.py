"""Model of the worker lease: claims, renewals and reaps synchronize on the worker's row.

The lease belongs to a worker, not to a job. A claim and a reap are transactions of two statements each; other
transactions may commit in between. Rows locked by one block the other or are skipped by it. A worker that dies restarts
as a new incarnation with its own row; the old row stays until it is reaped. The response to a claim may be lost.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol_models.explore import Exploration, explore


class Broken(enum.Flag):
    """Rule that the modelled protocol violates."""

    NOTHING = 0
    CLAIM_WITHOUT_LOCK = enum.auto()
    """A claim checks that its worker's lease is alive, but does not lock the row."""
    REMOVE_FIRST = enum.auto()
    """The reaper removes the worker in one transaction and resets its jobs in another."""
    INCARNATION_REUSED = enum.auto()
    """A restarted worker reuses the row of the incarnation that died."""
    LOST_CLAIM_IGNORED = enum.auto()
    """A worker whose claim got no response does not check which jobs it holds."""


class Row(enum.StrEnum):
    """State of the row of a worker's incarnation."""

    NOT_YET = "not yet registered"
    LIVE = "lease alive"
    EXPIRED = "lease expired"
    REMOVED = "removed"


class Process(NamedTuple):
    """Memory of a worker process."""

    incarnation: int
    claiming: bool = False
    """Its claim has locked the worker's row and not taken the job yet."""
    runs: int = 0
    """Token of the job it runs; 0 for none."""
    unsure: bool = False
    """Its claim got no response."""


class World(NamedTuple):
    """State of the system: one job, processes with the rows of their incarnations, and one reaper."""

    processes: tuple[Process, ...]
    rows: tuple[Row, ...]
    holder: int | None = None
    """Incarnation that holds the job; None while it is ready."""
    fence: int = 0
    finished: bool = False
    reaping: int | None = None
    """Incarnation whose row the reaper has locked."""
    removed: int | None = None
    """Broken reaper: incarnation that it has removed, and whose jobs it still has to reset."""
    fault: str = ""


class Size(NamedTuple):
    """Bounds of the model."""

    processes: int = 2
    lives: int = 2
    """Incarnations of each process."""
    attempts: int = 3


def check(size: Size, broken: Broken = Broken.NOTHING) -> Exploration[World]:
    """Check every interleaving."""
    protocol = Protocol(size, broken)
    processes = tuple(Process(number * size.lives) for number in range(size.processes))
    start = World(processes, (Row.NOT_YET,) * (size.processes * size.lives))
    return explore(start, protocol.actions, fault_in=_fault_in, is_final=lambda world: world.finished)


def _fault_in(world: World) -> str:
    if world.fault:
        return world.fault
    if world.holder is not None and world.rows[world.holder] is Row.REMOVED and world.removed != world.holder:
        return "P15: a job is held by a removed worker, so it is never reaped"
    return ""


class Protocol:
    """Actions of the protocol."""

    def __init__(self, size: Size, broken: Broken) -> None:
        self._size = size
        self._broken = broken

    def actions(self, world: World) -> Iterator[tuple[str, World]]:
        """Yield every action that is possible in this state, and its result."""
        for number, process in enumerate(world.processes):
            for name, after in self._process_actions(world, number, process):
                yield f"{name}{number}", after
        for incarnation, row in enumerate(world.rows):
            if row is Row.LIVE:
                yield f"expire{incarnation}", _set_row(world, incarnation, Row.EXPIRED)
        yield from self._reaper_actions(world)

    def _process_actions(self, world: World, number: int, process: Process) -> Iterator[tuple[str, World]]:
        me = process.incarnation
        row = world.rows[me]
        if row is Row.NOT_YET:
            yield "register", _set_row(world, me, Row.LIVE)
            return
        yield from self._deaths(world, number, process)
        if row is Row.LIVE and world.reaping != me:
            yield from self._renewals(world, process)
        holds = world.holder == me and world.fence == process.runs
        if process.claiming:
            yield from self._takes(world, number, process)
        elif process.runs:
            yield (
                "settle",
                _set_process(world._replace(holder=None, finished=True) if holds else world, number, Process(me)),
            )
        elif process.unsure:
            # Jobs that it holds but does not run are reset. This costs an attempt here, which keeps the model small.
            yield "check", _set_process(self._reset(world, me), number, Process(me))
        elif row is Row.LIVE and world.reaping != me:
            yield "claim", _set_process(world, number, process._replace(claiming=True))

    def _takes(self, world: World, number: int, process: Process) -> Iterator[tuple[str, World]]:
        """Run the second statement of a claim and commit."""
        if world.holder is not None or world.finished or world.fence >= self._size.attempts:
            yield "find nothing", _set_process(world, number, Process(process.incarnation))
            return
        taken = world._replace(holder=process.incarnation, fence=world.fence + 1)
        yield "take", _set_process(taken, number, Process(process.incarnation, runs=taken.fence))
        unsure = Broken.LOST_CLAIM_IGNORED not in self._broken
        yield "take, lost", _set_process(taken, number, Process(process.incarnation, unsure=unsure))

    def _renewals(self, world: World, process: Process) -> Iterator[tuple[str, World]]:
        """Renew the lease, which matters only if it keeps a job alive that no process runs."""
        if world.holder == process.incarnation and not process.runs and not process.unsure and not process.claiming:
            yield "renew", world._replace(fault="L1: a lease is renewed for a job that no process runs")

    def _deaths(self, world: World, number: int, process: Process) -> Iterator[tuple[str, World]]:
        """Die, losing the connection and all locks, and restart without memory."""
        life = process.incarnation % self._size.lives
        if Broken.INCARNATION_REUSED in self._broken:
            yield "restart", _set_process(world, number, Process(process.incarnation))
        elif life + 1 < self._size.lives:
            yield "restart", _set_process(world, number, Process(process.incarnation + 1))

    def _reaper_actions(self, world: World) -> Iterator[tuple[str, World]]:
        if world.removed is not None:
            yield "reset", self._reset(world, world.removed)._replace(removed=None)
            yield "die mid-reap", world._replace(removed=None)
        elif world.reaping is not None:
            yield "reap", _set_row(self._reset(world, world.reaping), world.reaping, Row.REMOVED)._replace(reaping=None)
            yield "die mid-reap", world._replace(reaping=None)
        else:
            for incarnation, row in enumerate(world.rows):
                if row is Row.EXPIRED and not self._locked_by_a_claim(world, incarnation):
                    if Broken.REMOVE_FIRST in self._broken:
                        yield (
                            f"remove{incarnation}",
                            _set_row(world, incarnation, Row.REMOVED)._replace(removed=incarnation),
                        )
                    else:
                        yield from self._lock(world, incarnation)

    def _lock(self, world: World, incarnation: int) -> Iterator[tuple[str, World]]:
        """Lock the row, then read which jobs the worker holds; a claim without a lock may commit after that."""
        if Broken.CLAIM_WITHOUT_LOCK in self._broken and world.holder != incarnation:
            yield f"remove{incarnation}", _set_row(world, incarnation, Row.REMOVED)
        else:
            yield f"lock{incarnation}", world._replace(reaping=incarnation)

    def _locked_by_a_claim(self, world: World, incarnation: int) -> bool:
        if Broken.CLAIM_WITHOUT_LOCK in self._broken:
            return False
        return any(process.claiming and process.incarnation == incarnation for process in world.processes)

    def _reset(self, world: World, incarnation: int) -> World:
        """Make the job ready, or finish it after its last attempt."""
        if world.holder != incarnation:
            return world
        return world._replace(holder=None, finished=world.finished or world.fence >= self._size.attempts)


def _set_row(world: World, incarnation: int, row: Row) -> World:
    return world._replace(rows=(*world.rows[:incarnation], row, *world.rows[incarnation + 1 :]))


def _set_process(world: World, number: int, process: Process) -> World:
    return world._replace(processes=(*world.processes[:number], process, *world.processes[number + 1 :]))
