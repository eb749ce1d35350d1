"""Supervisor's side of a worker process: start, lease renewal, reports after its death."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from holdfast import tasks
from holdfast.errors import HoldfastError, Unavailable
from holdfast.model.ids import WorkerId, new_worker_id, worker_name
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
    UNLIMITED_DRAIN_S,
    Drain,
    Hello,
    Load,
    Lost,
    SlotLost,
    Start,
    StartFailed,
    ToWorker,
    encode_line,
    read_from_worker,
    stop_timeout,
)
from holdfast.worker.processes.shared_state import RunningEntry, SharedState
from holdfast.worker.processes.sign_of_life import SilenceTimer, read_unresponsiveness
from holdfast.worker.running.queue_runner import STOP_TIMEOUT_S
from holdfast.worker.running.run import AttemptKey

if TYPE_CHECKING:
    from holdfast.worker.processes.forkserver import Process

MAX_OVERDUE_S = STOP_TIMEOUT_S + 2.0
"""Seconds past a job's timeout after which the worker counts as blocked and is killed."""

_CHECK_INTERVAL_S = 0.5
_BATCH_SIZE = 500


class LaunchPlan(NamedTuple):
    """Commands and values with which a supervisor starts and registers its worker processes."""

    command: Sequence[str]
    """Arguments of Python that start a worker process without a fork server."""
    forkserver: Sequence[str]
    """Arguments of Python that start a fork server; empty to execute every worker process."""
    entries: int
    """Number of entries in the shared state."""
    lease: Duration
    name: str
    """Prefix of the workers' names."""
    host: str
    version: str
    max_silence: float = 30.0
    """Seconds without a sign of life after which a worker process is killed and replaced."""
    node: str = ""
    """Id that all workers of this supervisor have in common."""


class SupervisedProcess:
    """Worker process, from its start until all jobs that it held are reported."""

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
        """True if the whole node drains; renewals report it.

        A worker that drains because it is being replaced does not report it: an operator's request to drain the node
        arrives in the response to a renewal, and must still reach this node.
        """
        self._overdue: dict[AttemptKey, RunningEntry] = {}
        self._silence = SilenceTimer(time.monotonic())
        self._silent = False
        """True if the worker was killed because it gave no sign of life."""
        self.pid = 0
        """Process id of the worker; 0 until it has started."""
        self.load = Load(0, 0)
        self.slot_lost = asyncio.Event()
        """Set when a slot is lost because its handler does not stop."""
        self.ready = asyncio.Event()
        """Set when the worker is registered and may claim."""
        self.crashed_at_work = False
        """True if the worker crashed while it ran jobs, so that its start is not the cause."""

    def shut_down(self, seconds: float) -> None:
        """Drain the worker because the whole node is shutting down."""
        self._node_draining = True
        self.drain(seconds)

    def drain(self, seconds: float) -> None:
        """Ask the worker to finish its jobs within this many seconds and exit."""
        self._stopping = True
        self._cancel_start()
        self._send(Drain(seconds))

    def retire(self) -> None:
        """Ask the worker to claim nothing more, finish its jobs however long they run, and exit.

        Unlike after `drain`, a crash of the worker meanwhile counts against the jobs that it runs.
        """
        self._send(Drain(UNLIMITED_DRAIN_S))

    def kill(self) -> None:
        """Kill the worker now; its running jobs are released and spend no attempt."""
        self._stopping = True
        self._cancel_start()
        self._signal(signal.SIGKILL)

    async def run(self) -> int:
        """Run the worker to its end and report the jobs it held; return its exit code."""
        ours, theirs = socket.socketpair()
        self._starting = tasks.start(
            self._launcher.start([theirs.fileno(), self._shared_state.descriptor]),
            name="holdfast worker start",
            awaited=True,
        )
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
        """Cancel a start that is under way, because loading the application can take long."""
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
        registration = await self._register(backend, info, hello.described)
        if registration is None:
            return
        worker, sent_at = registration
        self._extend_deadline(sent_at)
        self._send(Start(worker, self._lease))
        self.ready.set()
        renewing = tasks.start(self._renew(backend, worker), name="holdfast lease renewal")
        watching_lease = tasks.start(self._watch_lease(), name="holdfast lease watch")
        receiving = tasks.start(self._receive(reader), name="holdfast worker messages")
        watching_timeouts = tasks.start(self._watch_overdue(), name="holdfast timeout watch")
        watching_silence = tasks.start(self._watch_silence(), name="holdfast sign of life watch")
        try:
            await self._process.wait()
        finally:
            for task in (receiving, watching_lease, watching_timeouts, watching_silence):
                task.cancel()
            try:
                # The lease is renewed until the jobs are reported, so that no other node recovers them meanwhile.
                await self._report_abandoned(backend, worker)
            finally:  # jobs that could not be reported are recovered when the lease expires
                await tasks.stop(renewing, watching_lease, receiving, watching_timeouts, watching_silence)

    async def _register(
        self, backend: SupervisorBackend, info: WorkerInfo, described: Sequence[JobType]
    ) -> tuple[WorkerId, float] | None:
        """Register the worker, retrying while the database is unavailable.

        Returns:
            The worker's id and the time of the request, or None if the process ended first.
        """
        while self._process.returncode is None:
            # A new id for each try: if a failed try did register the worker, that lease expires without holding a job.
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
        """Renew the lease every third of its length; after a failure, retry sooner."""
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
                    await self._stop_after_loss("its lease has expired in the database")
                    return
                self._extend_deadline(sent_at)
                break

    async def _heartbeat(self, backend: SupervisorBackend, worker: WorkerId) -> bool:
        """Renew the lease, report the state of the process, and pass on a request to drain."""
        status = await backend.workers.renew(
            worker,
            self._plan.lease,
            memory=resident(self.pid) or self.load.memory,
            draining=self._node_draining,
            unresponsive=read_unresponsiveness(self._shared_state, self._silence.silence, time.monotonic()),
        )
        if status is LeaseStatus.DRAINING:
            self._on_drain_request()
        return status is not LeaseStatus.LOST

    def _extend_deadline(self, sent_at: float) -> None:
        # Counted from the start of the request, by the monotonic clock that all processes of a machine share.
        self._shared_state.deadline = sent_at + self._lease * (1 - LEASE_MARGIN)

    async def _watch_lease(self) -> None:
        """Stop the worker when its lease runs out, by a timer: a response may never arrive."""
        while (left := self._shared_state.deadline - time.monotonic()) > 0:  # noqa: ASYNC110 - a renewal changes the deadline
            await asyncio.sleep(left)
        await self._stop_after_loss("its lease could not be renewed in time")

    async def _stop_after_loss(self, reason: str) -> None:
        self._stopping = True
        self._say(f"worker {self.pid}: {reason}; stopping its handlers")
        self._send(Lost())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(stop_timeout(self._lease)):
                await self._process.wait()
        self._signal(signal.SIGKILL)

    async def _watch_overdue(self) -> None:
        """Kill a worker that misses the timeouts of its jobs because it is blocked or stopped."""
        while not self._overdue:
            await asyncio.sleep(_CHECK_INTERVAL_S)
            now = time.monotonic()
            running = self._shared_state.running()
            self._overdue = {(entry.job, entry.fence): entry for entry in running if entry.overdue(now) > MAX_OVERDUE_S}
        jobs = ", ".join(str(job) for job, _ in self._overdue)
        self._say(f"worker {self.pid}: its event loop is blocked, and {jobs} exceeded the timeout; killing it")
        self._signal(signal.SIGKILL)

    async def _watch_silence(self) -> None:
        """Kill a worker that gives no sign of life: it is stopped, or the GIL is never released."""
        timer = self._silence = SilenceTimer(time.monotonic())
        while timer.observe(self._shared_state.alive_at, time.monotonic()) < self._plan.max_silence:  # noqa: ASYNC110 - another process gives the signs
            await asyncio.sleep(_CHECK_INTERVAL_S)
        self._silent = True
        self._say(f"worker {self.pid}: no sign of life for {self._plan.max_silence:g} s; killing it")
        self._signal(signal.SIGKILL)

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        while (message := await _read(reader)) is not None:
            match message:
                case Load():
                    self.load = message
                case SlotLost(reason):
                    self.slot_lost.set()
                    self._say(f"worker {self.pid}: {reason}; the process will be replaced")
                case StartFailed(reason):
                    self._say(f"worker {self.pid}: {reason}")
                case Hello():
                    pass

    async def _report_abandoned(self, backend: SupervisorBackend, worker: WorkerId) -> None:
        """Report the jobs of a dead worker: running ones crashed, the others are released."""
        code = await self._process.wait()
        # Kill the programs that its handlers started, in its own process group and in those of job processes.
        self._signal(signal.SIGKILL)
        for group in self._shared_state.groups():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        running = {(entry.job, entry.fence): entry for entry in self._shared_state.running()}
        crashed = not self._stopping and not self._overdue and code != EXIT_LEASE_LOST
        self.crashed_at_work = crashed and bool(running)
        until = time.monotonic() + self._lease
        while time.monotonic() < until:
            try:
                async with asyncio.timeout(max(1.0, self._lease / 3)):  # a connection may have died silently
                    held = await backend.attempts.held_by(worker, _BATCH_SIZE)
                    if not held:
                        if not self._node_draining:  # a drain request may have been addressed to the dead worker
                            await self._heartbeat(backend, worker)
                        # The worker is not removed if a claim of it was still in flight and has taken jobs since.
                        if await backend.workers.depart(worker) or not await backend.attempts.held_by(worker, 1):
                            return
                        continue
                    await backend.attempts.settle_many(
                        [Report(job, self._outcome(job, running, code, crashed=crashed)) for job in held]
                    )
            except (HoldfastError, TimeoutError):
                await asyncio.sleep(0.1)

    def _outcome(self, job: Job, running: Mapping[AttemptKey, RunningEntry], code: int, *, crashed: bool) -> Outcome:
        entry = running.get((job.id, job.fence))
        if entry is None:
            return Interrupted()
        if (job.id, job.fence) in self._overdue and entry.timeout is not None:
            return TimedOut(entry.timeout)
        if not crashed:
            return Interrupted()
        silence = f"no sign of life for {self._plan.max_silence:g} s, so it was killed"
        return Crashed(silence if self._silent else describe_exit(code))

    def _send(self, message: ToWorker) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._writer.write(encode_line(message))

    def _signal(self, number: int) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)


async def _read(reader: asyncio.StreamReader) -> Hello | StartFailed | SlotLost | Load | None:
    with contextlib.suppress(OSError, msgspec.DecodeError, ValueError):
        if text := await reader.readline():
            return read_from_worker(text)
    return None
