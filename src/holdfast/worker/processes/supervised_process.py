"""One child as its supervisor sees it: started, its lease renewed, its death accounted for."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast.errors import HoldfastError, Unavailable
from holdfast.model.ids import JobId, WorkerId, new_worker_id, worker_name
from holdfast.model.job import Job
from holdfast.model.job_type import JobType
from holdfast.model.outcome import Crashed, Interrupted, Outcome, Report, TimedOut
from holdfast.model.time import Duration, in_seconds
from holdfast.model.worker import Renewed, WorkerInfo
from holdfast.worker.ports import Fleet
from holdfast.worker.processes.child import LOST_CODE, MARGIN, answer_within
from holdfast.worker.processes.launcher import CannotRun, Loaded
from holdfast.worker.processes.memory import resident
from holdfast.worker.processes.process_control import told
from holdfast.worker.processes.protocol import (
    Drain,
    Failed,
    Go,
    Hello,
    Load,
    Lost,
    ToChild,
    Worn,
    line,
    read_from_child,
)
from holdfast.worker.processes.shared_state import Begun, Board
from holdfast.worker.running.queue_runner import GRACE

if TYPE_CHECKING:
    from holdfast.worker.processes.forkserver import Process

OVERDUE = GRACE + 2.0
"""Seconds after a timeout when the child should long have dealt with it: its loop must be blocked."""

_LOOK_EVERY = 0.5
_HELD_AT_ONCE = 500


class Plan(NamedTuple):
    """How children are started and what they are told."""

    command: Sequence[str]
    """Starts a worker process from nothing."""
    nursery: Sequence[str]
    """Starts a process of which they can be forked; empty if they are not to be."""
    cells: int
    lease: Duration
    name: str
    host: str
    version: str
    node: str = ""


class Ward:
    """One child, from its start to the last of its jobs given back."""

    def __init__(
        self,
        plan: Plan,
        loaded: Loaded,
        fleet: Callable[[str], Awaitable[Fleet]],
        say: Callable[[str], None],
        asked_to_drain: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._loaded = loaded
        self._open_fleet = fleet
        self._say = say
        self._asked_to_drain = asked_to_drain
        self._lease = in_seconds(plan.lease)
        self._board = Board.create(plan.cells)
        self._starting: asyncio.Task[Process] | None = None
        self._process: Process
        self._writer: asyncio.StreamWriter | None = None
        self._told_to_end = False
        self._leaving = False
        """The whole node ends, which is told with the lease. One that is replaced alone does not tell of its end: the
        answer is how it hears that somebody wants the node to."""
        self._overdue: dict[JobId, Begun] = {}
        self.pid = 0
        """The child's process id, once there is one."""
        self.load = Load(0, 0)
        self.worn = asyncio.Event()
        """Set when one of its slots is lost for good."""
        self.ready = asyncio.Event()
        self.crashed_at_work = False
        """It ended with jobs begun and not recorded: one of them is to blame, not how it was started."""

    def leave(self, seconds: float) -> None:
        """The node ends: ask the child to finish within that time and end."""
        self._leaving = True
        self.drain(seconds)

    def drain(self, seconds: float) -> None:
        """Ask the child to finish within that time and end."""
        self._told_to_end = True
        self._start_no_more()
        self._tell(Drain(seconds))

    def kill(self) -> None:
        """End it now; what it runs is given back without an attempt being spent."""
        self._told_to_end = True
        self._start_no_more()
        self._signal(signal.SIGKILL)

    async def live(self) -> int:
        """From start to end; the exit code. When this returns, the child holds no job any more."""
        ours, theirs = socket.socketpair()
        self._starting = asyncio.create_task(self._loaded.start([theirs.fileno(), self._board.descriptor]))
        try:
            self._process = await self._starting
            self.pid = self._process.pid
        except BaseException:
            ours.close()
            self._board.close()
            if self._starting.cancelled() and self._told_to_end:
                return 0
            raise
        finally:
            theirs.close()
        reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        if self._told_to_end:
            self._tell(Drain(0))
        try:
            hello = await self._hello(reader)
            if hello is not None:
                await self._work(hello, reader)
            return await self._process.wait()
        finally:
            self._signal(signal.SIGKILL)
            await self._process.wait()
            self._writer.close()
            self._board.close()

    def _start_no_more(self) -> None:
        """One that is told to end before there is a process has none, however long the application takes to load."""
        if self._starting is not None:
            self._starting.cancel()

    async def _hello(self, reader: asyncio.StreamReader) -> Hello | None:
        match await _read(reader):
            case Hello() as hello:
                return hello
            case Failed(message):
                raise CannotRun(message)
            case _:
                return None

    async def _work(self, hello: Hello, reader: asyncio.StreamReader) -> None:
        fleet = await self._open_fleet(hello.url)
        queues = ",".join(f"{queue}:{slots}" for queue, slots in hello.queues.items())
        info = WorkerInfo(
            id=WorkerId(0), name="", host=self._plan.host, pid=self.pid,
            version=self._plan.version, queues=queues, slots=sum(hello.queues.values()),
            types=tuple(hello.types), node=self._plan.node,
        )  # fmt: skip
        entered = await self._enter(fleet, info, hello.described)
        if entered is None:
            return
        worker, sent_at = entered
        self._trust_from(sent_at)
        self._tell(Go(worker, self._lease))
        self.ready.set()
        renewing = asyncio.create_task(self._renew(fleet, worker))
        minding = asyncio.create_task(self._mind_the_lease())
        hearing = asyncio.create_task(self._hear(reader))
        looking = asyncio.create_task(self._look_for_the_overdue())
        try:
            await self._process.wait()
        finally:
            # The lease is kept until the jobs are given back: nobody else takes them meanwhile.
            for task in (hearing, minding, looking):
                task.cancel()
            try:
                await self._account(fleet, worker)
            finally:  # whatever is not given back by then is taken back when the lease has run out
                renewing.cancel()
                await asyncio.gather(renewing, minding, hearing, looking, return_exceptions=True)

    async def _enter(
        self, fleet: Fleet, info: WorkerInfo, described: Sequence[JobType]
    ) -> tuple[WorkerId, float] | None:
        """Have the child registered, as soon as the database answers; when that was asked for. None if it ended."""
        while self._process.returncode is None:
            # Another id each time: one that was entered without our knowing expires and holds nothing.
            worker = new_worker_id()
            named = msgspec.structs.replace(info, id=worker, name=f"{self._plan.name}/{worker_name(worker)[-6:]}")
            sent_at = time.monotonic()
            try:
                async with asyncio.timeout(self._lease / 3):
                    await fleet.register(named, self._plan.lease, described)
            except (Unavailable, TimeoutError):
                await asyncio.sleep(self._lease / 15)
            else:
                return worker, sent_at
        return None

    async def _renew(self, fleet: Fleet, worker: WorkerId) -> None:
        """Prolong the lease at a third of it; when it fails, try again soon."""
        while True:
            await asyncio.sleep(self._lease / 3)
            while True:
                sent_at = time.monotonic()
                try:
                    async with asyncio.timeout(self._lease / 3):
                        alive = await self._beat(fleet, worker)
                except (HoldfastError, TimeoutError):
                    await asyncio.sleep(self._lease / 15)
                    continue
                if not alive:
                    self._board.deadline = 0.0
                    await self._lost("the database says that the lease is gone")
                    return
                self._trust_from(sent_at)
                break

    async def _beat(self, fleet: Fleet, worker: WorkerId) -> bool:
        """Renew the lease, tell how the child is, and pass on that somebody wants this node to end."""
        memory = resident(self.pid) or self.load.memory
        answer = await fleet.renew(worker, self._plan.lease, memory=memory, draining=self._leaving)
        if answer is Renewed.DRAINING:
            self._asked_to_drain()
        return answer is not Renewed.LOST

    def _trust_from(self, sent_at: float) -> None:
        # Counted from when it was asked for, on a clock that all processes of a machine share.
        self._board.deadline = sent_at + self._lease * (1 - MARGIN)

    async def _mind_the_lease(self) -> None:
        """A timer, not the answer of a renewal, tells when the handlers must stop: an answer may never come."""
        while (left := self._board.deadline - time.monotonic()) > 0:  # noqa: ASYNC110 - a renewal moves the deadline
            await asyncio.sleep(left)
        await self._lost("the lease could not be renewed in time")

    async def _lost(self, why: str) -> None:
        self._told_to_end = True
        self._say(f"worker {self.pid}: {why}; stopping its handlers")
        self._tell(Lost())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(answer_within(self._lease)):
                await self._process.wait()
        self._signal(signal.SIGKILL)

    async def _look_for_the_overdue(self) -> None:
        """A child whose loop is blocked, or that is stopped, does not notice timeouts: end it for them."""
        while not self._overdue:
            await asyncio.sleep(_LOOK_EVERY)
            now = time.monotonic()
            self._overdue = {each.job: each for each in self._board.begun() if each.overdue(now) > OVERDUE}
        jobs = ", ".join(str(job) for job in self._overdue)
        self._say(f"worker {self.pid}: it does not notice that {jobs} took too long; killing it")
        self._signal(signal.SIGKILL)

    async def _hear(self, reader: asyncio.StreamReader) -> None:
        while (message := await _read(reader)) is not None:
            match message:
                case Load():
                    self.load = message
                case Worn(reason):
                    self.worn.set()
                    self._say(f"worker {self.pid}: {reason}; it will be replaced")
                case Failed(reason):
                    self._say(f"worker {self.pid}: {reason}")
                case Hello():
                    pass

    async def _account(self, fleet: Fleet, worker: WorkerId) -> None:
        """Report what the child can no longer report: what it had begun has crashed, the rest goes back."""
        code = await self._process.wait()
        self._signal(signal.SIGKILL)  # whatever its handlers started, here and in processes of their own
        for group in self._board.groups():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        begun = {each.job: each for each in self._board.begun()}
        crashed = not self._told_to_end and not self._overdue and code != LOST_CODE
        self.crashed_at_work = crashed and bool(begun)
        until = time.monotonic() + self._lease
        while time.monotonic() < until:
            try:
                async with asyncio.timeout(max(1.0, self._lease / 3)):  # a connection may have died silently
                    held = await fleet.held_by(worker, _HELD_AT_ONCE)
                    if not held:
                        if not self._leaving:  # whoever asked this node to end shall not have asked the dead
                            await self._beat(fleet, worker)
                        # It is not struck if a claim of the dead was under way and took something after all.
                        if await fleet.depart(worker) or not await fleet.held_by(worker, 1):
                            return
                        continue
                    lot = [Report(job, self._outcome(job, begun, code, crashed=crashed)) for job in held]
                    await fleet.settle_many(lot)
            except (HoldfastError, TimeoutError):
                await asyncio.sleep(0.1)

    def _outcome(self, job: Job, begun: Mapping[JobId, Begun], code: int, *, crashed: bool) -> Outcome:
        known = begun.get(job.id)
        if known is None or known.fence != job.fence:
            return Interrupted()
        if job.id in self._overdue and known.timeout is not None:
            return TimedOut(known.timeout)
        return Crashed(told(code)) if crashed else Interrupted()

    def _tell(self, message: ToChild) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._writer.write(line(message))

    def _signal(self, number: int) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


async def _read(reader: asyncio.StreamReader) -> Hello | Failed | Worn | Load | None:
    with contextlib.suppress(OSError, msgspec.DecodeError, ValueError):
        if text := await reader.readline():
            return read_from_child(text)
    return None
