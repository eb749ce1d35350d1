"""Runs worker processes, replaces those that die, and ends them in good order. Runs no code of the user's itself."""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable

from holdfast.errors import HoldfastError
from holdfast.worker.ports import SupervisorBackend
from holdfast.worker.processes.launcher import WorkerLauncher
from holdfast.worker.processes.process_control import describe_exit
from holdfast.worker.processes.protocol import EXIT_LEASE_LOST, EXIT_NO_DATABASE
from holdfast.worker.processes.supervised_process import LaunchPlan, SupervisedProcess

_LOG = logging.getLogger("holdfast")

KILL_TIMEOUT_S = 15.0
"""Seconds after the drain is over until a child that has not ended is killed."""

MIN_RESTART_DELAY_S, MAX_RESTART_DELAY_S = 0.05, 10.0
MAX_RECONNECT_DELAY_S = 1.0
"""The longest pause before another is started when it was the database that was away."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_REPORT_INTERVAL_S = 10.0
_STABLE_AFTER_S = 10.0
"""A child that lived this long was no false start."""


def restart_delay(last: float, code: int, *, at_work: bool, lived: float) -> float:
    """Seconds until another child is started: longer after each false start, and short when the start was not false.

    A child that ended because the database was away, or its lease with it, will not end so when that is back.
    """
    if at_work or lived > _STABLE_AFTER_S:
        return MIN_RESTART_DELAY_S
    longest = MAX_RECONNECT_DELAY_S if code in (EXIT_LEASE_LOST, EXIT_NO_DATABASE) else MAX_RESTART_DELAY_S
    return min(longest, max(MIN_RESTART_DELAY_S, 2 * last))


class Supervisor:
    """Keeps `count` children at work until it is told to stop."""

    def __init__(
        self,
        plan: LaunchPlan,
        count: int,
        *,
        open_backend: Callable[[str], Awaitable[SupervisorBackend]],
        drain: float,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._count = count
        self._open_backend = open_backend
        self._drain = drain
        self._say = say
        self._launcher = WorkerLauncher(plan.command, plan.forkserver, say)
        self._children: set[SupervisedProcess] = set()
        self._stop = asyncio.Event()
        self.drained = False
        """It was asked through the service to end, not by a signal."""
        self.signalled = asyncio.Event()
        self._urgent = False
        self._worked = False
        """Whether one of the children was at work, once."""
        self._opening = asyncio.Lock()
        self._lease_backend: SupervisorBackend | None = None
        self._maintenance: asyncio.Task[None] | None = None
        self._maintenance_backend: SupervisorBackend | None = None

    async def run(self) -> None:
        """Until stopped by a signal or `stop`; raises `CannotRun` when the application cannot be run at all."""
        self.handle_signals()
        try:
            async with asyncio.TaskGroup() as group:
                telling = group.create_task(self._report_drain())
                keeping = [group.create_task(self._supervise(n + 1)) for n in range(self._count)]
                await asyncio.wait(keeping)
                self._stop.set()
                telling.cancel()
        except* HoldfastError as errors:
            raise errors.exceptions[0] from None
        finally:
            if not self.drained:  # otherwise whoever runs this may go on, and is to hear of signals
                for number in _SIGNALS:
                    asyncio.get_running_loop().remove_signal_handler(number)
            await self._close()

    def handle_signals(self) -> None:
        """From now on SIGTERM and SIGINT stop it."""

        def heard() -> None:
            self.signalled.set()
            if self._children or not self._stop.is_set():  # drained, there may be nothing left to stop
                self.stop()

        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, heard)

    def stop(self) -> None:
        """Claim no more, finish what runs, hand back the rest. Called again: at once."""
        if self._stop.is_set() and not self._urgent:
            self._urgent = True
            self._say("stopping at once: what still runs is handed back")
            for child in self._children:
                child.shut_down(0)
            return
        if self._urgent:
            for child in self._children:
                child.kill()
            return
        self._stop.set()
        self._say("stopping: nothing more is claimed")
        for child in self._children:
            child.shut_down(self._drain)

    def _drain_node(self) -> None:
        """One of the children was asked to end: what is to be taken out of service is the node."""
        if not self._stop.is_set():
            self.drained = True
            self._say("asked through the service to drain")
            self.stop()

    async def _supervise(self, n: int) -> None:
        """Have one child at work at any time."""
        pause = 0.0
        while not self._stop.is_set():
            try:
                how, pause = await self._run_one(n, pause)
            except Exception as error:
                if isinstance(error, HoldfastError) and not self._has_worked():
                    raise  # it is not set up right: whoever started it is to know
                # A node that works survives what nobody thought of: the next child, or the lease, puts it right.
                _LOG.exception("worker %d could not be looked after", n)
                how = f"worker {n} could not be looked after ({type(error).__name__}: {error})"
                pause = restart_delay(pause, 1, at_work=False, lived=0.0)
            if self._stop.is_set():
                return
            self._say(f"{how}; starting another")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), pause)

    async def _run_one(self, n: int, pause: float) -> tuple[str, float]:
        """Start one and look after it until it has ended; how it did, and how long to wait before the next."""
        child = SupervisedProcess(self._plan, self._launcher, self._open_backends, self._say, self._drain_node)
        self._children.add(child)
        began = time.monotonic()
        recycling = asyncio.create_task(self._recycle(child))
        overdue = asyncio.create_task(self._kill_after_drain(child))
        try:
            code = await child.run()
        finally:
            self._worked |= child.ready.is_set()
            self._children.discard(child)
            recycling.cancel()
            overdue.cancel()
        lived = time.monotonic() - began if child.ready.is_set() else 0.0
        pause = restart_delay(pause, code, at_work=child.crashed_at_work, lived=lived)
        return f"worker {n} (process {child.pid}) ended by {describe_exit(code)}", pause

    def _has_worked(self) -> bool:
        return self._worked or any(child.ready.is_set() for child in self._children)

    async def _recycle(self, child: SupervisedProcess) -> None:
        """Replace a child one of whose slots is lost, once its other jobs had time to end."""
        await child.on_slot_lost.wait()
        child.drain(self._drain)
        await asyncio.sleep(self._drain + KILL_TIMEOUT_S)
        child.kill()

    async def _kill_after_drain(self, child: SupervisedProcess) -> None:
        """A child that does not end by itself, its loop blocked perhaps, is ended."""
        await self._stop.wait()
        until = time.monotonic() + self._drain + KILL_TIMEOUT_S
        while time.monotonic() < until:
            await asyncio.sleep(0.1)
            if self._urgent:
                until = min(until, time.monotonic() + 2.0)
                await asyncio.sleep(max(0.0, until - time.monotonic()))
        child.kill()

    async def _report_drain(self) -> None:
        """Tell it when it changes, and now and then when it does not."""
        await self._stop.wait()
        began = time.monotonic()
        last, again_at = 0, 0.0
        while not self._urgent:
            running, now = sum(child.load.running for child in self._children), time.monotonic()
            if running and (running != last or now >= again_at):
                left = max(0.0, self._drain - (now - began))
                jobs = "1 running job" if running == 1 else f"{running} running jobs"
                again = "Ctrl-C or SIGTERM again to stop at once"
                self._say(f"waiting for {jobs}, at most {left:.0f} s more; {again}" if left else f"handing back {jobs}")
                again_at = now + _REPORT_INTERVAL_S
            last = running
            await asyncio.sleep(1.0)

    async def _open_backends(self, url: str) -> SupervisorBackend:
        """The connection that renews leases; it does nothing else, so nothing holds it up."""
        async with self._opening:
            if self._lease_backend is None:
                self._lease_backend = await self._open_backend(url)
                self._maintenance_backend = await self._open_backend(url)
                self._maintenance = asyncio.create_task(self._maintenance_backend.run_maintenance(asyncio.Event()))
        return self._lease_backend

    async def _close(self) -> None:
        await self._launcher.aclose()
        if self._maintenance is not None:
            self._maintenance.cancel()
            await asyncio.gather(self._maintenance, return_exceptions=True)
        for backend in (self._maintenance_backend, self._lease_backend):
            if backend is not None:
                await backend.aclose()
