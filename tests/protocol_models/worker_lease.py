"""The lease is a worker's, not a job's: claim, renewal and reap meet on the worker's row.

A claim and a reap are transactions of two statements each; between them anything else may commit. What one has locked,
the other waits for or passes by. A worker that dies comes back as a new incarnation with a row of its own; the old row
stays until it is reaped. The answer to a claim may be lost.
"""

import enum
from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol_models.explore import Explored, explore


class Broken(enum.Flag):
    """A rule that the protocol breaks."""

    NOTHING = 0
    CLAIM_WITHOUT_LOCK = enum.auto()
    """A claim looks whether its worker's lease lives, but does not lock the row."""
    STRIKE_FIRST = enum.auto()
    """The reaper strikes the worker in one transaction and puts its jobs back in another."""
    INCARNATION_REUSED = enum.auto()
    """A worker that comes back takes the row of the one that died."""
    LOST_CLAIM_FORGOTTEN = enum.auto()
    """A worker whose claim got no answer does not look at what it holds."""


class Row(enum.StrEnum):
    """A worker's row, by incarnation."""

    NOT_YET = "not yet registered"
    LIVE = "lease lives"
    EXPIRED = "lease ran out"
    GONE = "struck"


class Process(NamedTuple):
    """What a worker process has in its memory."""

    incarnation: int
    claiming: bool = False
    """Its claim has looked at the worker's row and not yet taken the job."""
    runs: int = 0
    """The token of the job it runs; 0 for none."""
    unsure: bool = False
    """Its claim got no answer."""


class World(NamedTuple):
    """One job, some processes with their incarnations' rows, one reaper."""

    processes: tuple[Process, ...]
    rows: tuple[Row, ...]
    holder: int | None = None
    """The incarnation that holds the job; None while it is ready."""
    fence: int = 0
    finished: bool = False
    reaping: int | None = None
    """The incarnation whose row the reaper has locked."""
    struck: int | None = None
    """Broken reaper: the incarnation it has struck and whose jobs it has still to put back."""
    fault: str = ""


class Size(NamedTuple):
    """How much of everything there is."""

    processes: int = 2
    lives: int = 2
    """Incarnations of each process."""
    attempts: int = 3


def check(size: Size, broken: Broken = Broken.NOTHING) -> Explored[World]:
    """Try every interleaving."""
    protocol = Protocol(size, broken)
    processes = tuple(Process(number * size.lives) for number in range(size.processes))
    start = World(processes, (Row.NOT_YET,) * (size.processes * size.lives))
    return explore(start, protocol.moves, fault_in=_fault_in, ended=lambda world: world.finished)


def _fault_in(world: World) -> str:
    if world.fault:
        return world.fault
    if world.holder is not None and world.rows[world.holder] is Row.GONE and world.struck != world.holder:
        return "P15: a job is held by a worker that is struck, so nobody will reap it"
    return ""


class Protocol:
    """Which moves there are."""

    def __init__(self, size: Size, broken: Broken) -> None:
        self._size = size
        self._broken = broken

    def moves(self, world: World) -> Iterator[tuple[str, World]]:
        """Everything that may happen next."""
        for number, process in enumerate(world.processes):
            for name, after in self._process_moves(world, number, process):
                yield f"{name}{number}", after
        for incarnation, row in enumerate(world.rows):
            if row is Row.LIVE:
                yield f"expire{incarnation}", _row(world, incarnation, Row.EXPIRED)
        yield from self._reaper_moves(world)

    def _process_moves(self, world: World, number: int, process: Process) -> Iterator[tuple[str, World]]:
        me = process.incarnation
        row = world.rows[me]
        if row is Row.NOT_YET:
            yield "register", _row(world, me, Row.LIVE)
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
                _process(world._replace(holder=None, finished=True) if holds else world, number, Process(me)),
            )
        elif process.unsure:
            # Whatever it holds and does not run goes back. Here that costs an attempt, so that the model stays small.
            yield "look", _process(self._put_back(world, me), number, Process(me))
        elif row is Row.LIVE and world.reaping != me:
            yield "ask", _process(world, number, process._replace(claiming=True))

    def _takes(self, world: World, number: int, process: Process) -> Iterator[tuple[str, World]]:
        """The second statement of a claim, and its commit."""
        if world.holder is not None or world.finished or world.fence >= self._size.attempts:
            yield "find nothing", _process(world, number, Process(process.incarnation))
            return
        taken = world._replace(holder=process.incarnation, fence=world.fence + 1)
        yield "take", _process(taken, number, Process(process.incarnation, runs=taken.fence))
        unsure = Broken.LOST_CLAIM_FORGOTTEN not in self._broken
        yield "take, lost", _process(taken, number, Process(process.incarnation, unsure=unsure))

    def _renewals(self, world: World, process: Process) -> Iterator[tuple[str, World]]:
        """A renewal changes nothing here that matters, unless nobody runs what it keeps alive."""
        if world.holder == process.incarnation and not process.runs and not process.unsure and not process.claiming:
            yield "renew", world._replace(fault="L1: a lease is renewed for a job that nobody runs")

    def _deaths(self, world: World, number: int, process: Process) -> Iterator[tuple[str, World]]:
        """It dies, with its connection and all locks, and comes back without memory."""
        life = process.incarnation % self._size.lives
        if Broken.INCARNATION_REUSED in self._broken:
            yield "restart", _process(world, number, Process(process.incarnation))
        elif life + 1 < self._size.lives:
            yield "restart", _process(world, number, Process(process.incarnation + 1))

    def _reaper_moves(self, world: World) -> Iterator[tuple[str, World]]:
        if world.struck is not None:
            yield "put back", self._put_back(world, world.struck)._replace(struck=None)
            yield "die mid-reap", world._replace(struck=None)
        elif world.reaping is not None:
            yield "reap", _row(self._put_back(world, world.reaping), world.reaping, Row.GONE)._replace(reaping=None)
            yield "die mid-reap", world._replace(reaping=None)
        else:
            for incarnation, row in enumerate(world.rows):
                if row is Row.EXPIRED and not self._locked_by_a_claim(world, incarnation):
                    if Broken.STRIKE_FIRST in self._broken:
                        yield f"strike{incarnation}", _row(world, incarnation, Row.GONE)._replace(struck=incarnation)
                    else:
                        yield from self._lock(world, incarnation)

    def _lock(self, world: World, incarnation: int) -> Iterator[tuple[str, World]]:
        """Having locked the row, it reads what the worker holds: a claim that locks nothing may commit after that."""
        if Broken.CLAIM_WITHOUT_LOCK in self._broken and world.holder != incarnation:
            yield f"strike{incarnation}", _row(world, incarnation, Row.GONE)
        else:
            yield f"lock{incarnation}", world._replace(reaping=incarnation)

    def _locked_by_a_claim(self, world: World, incarnation: int) -> bool:
        if Broken.CLAIM_WITHOUT_LOCK in self._broken:
            return False
        return any(process.claiming and process.incarnation == incarnation for process in world.processes)

    def _put_back(self, world: World, incarnation: int) -> World:
        """Ready again, or dead when its attempts are spent."""
        if world.holder != incarnation:
            return world
        return world._replace(holder=None, finished=world.finished or world.fence >= self._size.attempts)


def _row(world: World, incarnation: int, row: Row) -> World:
    return world._replace(rows=(*world.rows[:incarnation], row, *world.rows[incarnation + 1 :]))


def _process(world: World, number: int, process: Process) -> World:
    return world._replace(processes=(*world.processes[:number], process, *world.processes[number + 1 :]))
