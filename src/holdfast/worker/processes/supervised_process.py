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
from holdfast.model.worker import LeaseStatus, WorkerInfo
from holdfast.worker.ports import SupervisorBackend
from holdfast.worker.processes.launcher import CannotRun, WorkerLauncher
from holdfast.worker.processes.memory import resident
from holdfast.worker.processes.process_control import describe_exit
from holdfast.worker.processes.protocol import (
    EXIT_LEASE_LOST,
    LEASE_MARGIN,
    Drain,
    Hello,
    Load,
    Lost,
    SlotLost,
    Start,
    StartFailed,
    ToChild,
    line,
    read_from_child,
    stop_timeout,
)
from holdfast.worker.processes.shared_state import RunningEntry, SharedState
from holdfast.worker.running.queue_runner import STOP_TIMEOUT_S

if TYPE_CHECKING:
    from holdfast.worker.processes.forkserver import Process

OVERDUE_S = STOP_TIMEOUT_S + 2.0
"""Seconds after a timeout when the child should long have dealt with it: its loop must be blocked."""

_CHECK_INTERVAL_S = 0.5
_BATCH_SIZE = 500


class LaunchPlan(NamedTuple):
    """How children are started and what they are told."""

    command: Sequence[str]
    """Starts a worker process from nothing."""
    forkserver: Sequence[str]
    """Starts a process of which they can be forked; empty if they are not to be."""
    entries: int
    lease: Duration
    name: str
    host: str
    version: str
    node: str = ""


class SupervisedProcess:
    """One child, from its start to the last of its jobs given back."""

    def __init__(
        self,
        plan: LaunchPlan,
        launcher: WorkerLauncher,
        open_backend: Callable[[str], Awaitable[SupervisorBackend]],
        say: Callable[[str], None],
        on_drain_request: Callable[[], None] = lambda: None,
    ) -> None:
        self._plan = plan
        self._launcher = launcher
        self._open_backend = open_backend
        self._say = say
        self._on_drain_request = on_drain_request
        self._lease = in_seconds(plan.lease)
        self._shared_state = SharedState.create(plan.entries)
        self._starting: asyncio.Task[Process] | None = None
        self._process: Process
        self._writer: asyncio.StreamWriter | None = None
        self._stopping = False
        self._node_draining = False
        """The whole node ends, which is told with the lease. One that is replaced alone does not tell of its end: the
        answer is how it hears that somebody wants the node to."""
        self._overdue: dict[JobId, RunningEntry] = {}
        self.pid = 0
        """The child's process id, once there is one."""
        self.load = Load(0, 0)
        self.on_slot_lost = asyncio.Event()
        """Set when one of its slots is lost for good."""
        self.ready = asyncio.Event()
        self.crashed_at_work = False
        """It ended with jobs begun and not recorded: one of them is to blame, not how it was started."""

    def shut_down(self, seconds: float) -> None:
        """The node ends: ask the child to finish within that time and end."""
        self._node_draining = True
        self.drain(seconds)

    def drain(self, seconds: float) -> None:
        """Ask the child to finish within that time and end."""
        self._stopping = True
        self._cancel_start()
        self._send(Drain(seconds))

    def kill(self) -> None:
        """End it now; what it runs is given back without an attempt being spent."""
        self._stopping = True
        self._cancel_start()
        self._signal(signal.SIGKILL)

    async def run(self) -> int:
        """From start to end; the exit code. When this returns, the child holds no job any more."""
        ours, theirs = socket.socketpair()
        self._starting = asyncio.create_task(self._launcher.start([theirs.fileno(), self._shared_state.descriptor]))
        try:
            self._process = await self._starting
            self.pid = self._process.pid
        except BaseException:
            ours.close()
            self._shared_state.close()
            if self._starting.cancelled() and self._stopping:
                return 0
            raise
        finally:
            theirs.close()
        reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        if self._stopping:
            self._send(Drain(0))
        try:
            hello = await self._hello(reader)
            if hello is not None:
                await self._work(hello, reader)
            return await self._process.wait()
        finally:
            self._signal(signal.SIGKILL)
            await self._process.wait()
            self._writer.close()
            self._shared_state.close()

    def _cancel_start(self) -> None:
        """One that is told to end before there is a process has none, however long the application takes to load."""
        if self._starting is not None:
            self._starting.cancel()

    async def _hello(self, reader: asyncio.StreamReader) -> Hello | None:
        match await _read(reader):
            case Hello() as hello:
                return hello
            case StartFailed(message):
                raise CannotRun(message)
            case _:
                return None

    async def _work(self, hello: Hello, reader: asyncio.StreamReader) -> None:
        backend = await self._open_backend(hello.url)
        queues = ",".join(f"{queue}:{slots}" for queue, slots in hello.queues.items())
        info = WorkerInfo(
            id=WorkerId(0), name="", host=self._plan.host, pid=self.pid,
            version=self._plan.version, queues=queues, slots=sum(hello.queues.values()),
            types=tuple(hello.types), node=self._plan.node,
        )  # fmt: skip
        entered = await self._register(backend, info, hello.described)
        if entered is None:
            return
        worker, sent_at = entered
        self._extend_deadline(sent_at)
        self._send(Start(worker, self._lease))
        self.ready.set()
        renewing = asyncio.create_task(self._renew(backend, worker))
        minding = asyncio.create_task(self._watch_lease())
        hearing = asyncio.create_task(self._receive(reader))
        looking = asyncio.create_task(self._watch_overdue())
        try:
            await self._process.wait()
        finally:
            # The lease is kept until the jobs are given back: nobody else takes them meanwhile.
            for task in (hearing, minding, looking):
                task.cancel()
            try:
                await self._report_abandoned(backend, worker)
            finally:  # whatever is not given back by then is taken back when the lease has run out
                renewing.cancel()
                await asyncio.gather(renewing, minding, hearing, looking, return_exceptions=True)

    async def _register(
        self, backend: SupervisorBackend, info: WorkerInfo, described: Sequence[JobType]
    ) -> tuple[WorkerId, float] | None:
        """Have the child registered, as soon as the database answers; when that was asked for. None if it ended."""
        while self._process.returncode is None:
            # Another id each time: one that was entered without our knowing expires and holds nothing.
            worker = new_worker_id()
            named = msgspec.structs.replace(info, id=worker, name=f"{self._plan.name}/{worker_name(worker)[-6:]}")
            sent_at = time.monotonic()
            try:
                async with asyncio.timeout(self._lease / 3):
                    await backend.workers.register(named, self._plan.lease, described)
            except (Unavailable, TimeoutError):
                await asyncio.sleep(self._lease / 15)
            else:
                return worker, sent_at
        return None

    async def _renew(self, backend: SupervisorBackend, worker: WorkerId) -> None:
        """Prolong the lease at a third of it; when it fails, try again soon."""
        while True:
            await asyncio.sleep(self._lease / 3)
            while True:
                sent_at = time.monotonic()
                try:
                    async with asyncio.timeout(self._lease / 3):
                        alive = await self._heartbeat(backend, worker)
                except (HoldfastError, TimeoutError):
                    await asyncio.sleep(self._lease / 15)
                    continue
                if not alive:
                    self._shared_state.deadline = 0.0
                    await self._lost("the database says that the lease is gone")
                    return
                self._extend_deadline(sent_at)
                break

    async def _heartbeat(self, backend: SupervisorBackend, worker: WorkerId) -> bool:
        """Renew the lease, tell how the child is, and pass on that somebody wants this node to end."""
        memory = resident(self.pid) or self.load.memory
        answer = await backend.workers.renew(worker, self._plan.lease, memory=memory, draining=self._node_draining)
        if answer is LeaseStatus.DRAINING:
            self._on_drain_request()
        return answer is not LeaseStatus.LOST

    def _extend_deadline(self, sent_at: float) -> None:
        # Counted from when it was asked for, on a clock that all processes of a machine share.
        self._shared_state.deadline = sent_at + self._lease * (1 - LEASE_MARGIN)

    async def _watch_lease(self) -> None:
        """A timer, not the answer of a renewal, tells when the handlers must stop: an answer may never come."""
        while (left := self._shared_state.deadline - time.monotonic()) > 0:  # noqa: ASYNC110 - a renewal moves the deadline
            await asyncio.sleep(left)
        await self._lost("the lease could not be renewed in time")

    async def _lost(self, why: str) -> None:
        self._stopping = True
        self._say(f"worker {self.pid}: {why}; stopping its handlers")
        self._send(Lost())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(stop_timeout(self._lease)):
                await self._process.wait()
        self._signal(signal.SIGKILL)

    async def _watch_overdue(self) -> None:
        """A child whose loop is blocked, or that is stopped, does not notice timeouts: end it for them."""
        while not self._overdue:
            await asyncio.sleep(_CHECK_INTERVAL_S)
            now = time.monotonic()
            self._overdue = {each.job: each for each in self._shared_state.begun() if each.overdue(now) > OVERDUE_S}
        jobs = ", ".join(str(job) for job in self._overdue)
        self._say(f"worker {self.pid}: it does not notice that {jobs} took too long; killing it")
        self._signal(signal.SIGKILL)

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        while (message := await _read(reader)) is not None:
            match message:
                case Load():
                    self.load = message
                case SlotLost(reason):
                    self.on_slot_lost.set()
                    self._say(f"worker {self.pid}: {reason}; it will be replaced")
                case StartFailed(reason):
                    self._say(f"worker {self.pid}: {reason}")
                case Hello():
                    pass

    async def _report_abandoned(self, backend: SupervisorBackend, worker: WorkerId) -> None:
        """Report what the child can no longer report: what it had begun has crashed, the rest goes back."""
        code = await self._process.wait()
        self._signal(signal.SIGKILL)  # whatever its handlers started, here and in processes of their own
        for group in self._shared_state.groups():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        begun = {each.job: each for each in self._shared_state.begun()}
        crashed = not self._stopping and not self._overdue and code != EXIT_LEASE_LOST
        self.crashed_at_work = crashed and bool(begun)
        until = time.monotonic() + self._lease
        while time.monotonic() < until:
            try:
                async with asyncio.timeout(max(1.0, self._lease / 3)):  # a connection may have died silently
                    held = await backend.attempts.held_by(worker, _BATCH_SIZE)
                    if not held:
                        if not self._node_draining:  # whoever asked this node to end shall not have asked the dead
                            await self._heartbeat(backend, worker)
                        # It is not struck if a claim of the dead was under way and took something after all.
                        if await backend.workers.depart(worker) or not await backend.attempts.held_by(worker, 1):
                            return
                        continue
                    lot = [Report(job, self._outcome(job, begun, code, crashed=crashed)) for job in held]
                    await backend.attempts.settle_many(lot)
            except (HoldfastError, TimeoutError):
                await asyncio.sleep(0.1)

    def _outcome(self, job: Job, begun: Mapping[JobId, RunningEntry], code: int, *, crashed: bool) -> Outcome:
        known = begun.get(job.id)
        if known is None or known.fence != job.fence:
            return Interrupted()
        if job.id in self._overdue and known.timeout is not None:
            return TimedOut(known.timeout)
        return Crashed(describe_exit(code)) if crashed else Interrupted()

    def _send(self, message: ToChild) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._writer.write(line(message))

    def _signal(self, number: int) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


async def _read(reader: asyncio.StreamReader) -> Hello | StartFailed | SlotLost | Load | None:
    with contextlib.suppress(OSError, msgspec.DecodeError, ValueError):
        if text := await reader.readline():
            return read_from_child(text)
    return None
