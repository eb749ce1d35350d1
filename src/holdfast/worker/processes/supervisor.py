"""Supervisor: runs worker processes, replaces those that die and shuts them down gracefully.

It runs no user code, so that a handler cannot crash or block it.
"""

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Collection

from holdfast import tasks
from holdfast.errors import HoldfastError, SchemaMismatch
from holdfast.policy.recycling import NEVER, RecyclingRules, recycling_reason
from holdfast.worker.ports import SupervisorBackend
from holdfast.worker.processes.launcher import CannotRun, WorkerLauncher
from holdfast.worker.processes.memory import resident
from holdfast.worker.processes.process_control import describe_exit
from holdfast.worker.processes.protocol import EXIT_LEASE_LOST, EXIT_NO_DATABASE
from holdfast.worker.processes.supervised_process import LaunchPlan, SupervisedProcess

_LOG = logging.getLogger("holdfast")

KILL_TIMEOUT_S = 15.0
"""Seconds between the end of the drain period and the kill of a worker that has not exited."""

MIN_RESTART_DELAY_S, MAX_RESTART_DELAY_S = 0.05, 10.0
MAX_RECONNECT_DELAY_S = 1.0
"""Longest delay before a restart if the worker ended because the database was unavailable."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_REPORT_INTERVAL_S = 10.0
_RECYCLING_INTERVAL_S = 0.5
_STABLE_AFTER_S = 10.0
"""A worker that ran this long started successfully."""


def restart_delay(last: float, code: int, *, at_work: bool, lifetime: float) -> float:
    """Return the seconds until the next start, which double after each failed start.

    The delay stays short if the database was the cause, because the next start succeeds as soon as it is back.

    Args:
        last: Delay before the previous start.
        code: Exit code of the worker.
        at_work: The worker crashed while it ran jobs.
        lifetime: Seconds between its start and its end; 0 if it never became ready.
    """
    if at_work or lifetime > _STABLE_AFTER_S:
        return MIN_RESTART_DELAY_S
    longest = MAX_RECONNECT_DELAY_S if code in (EXIT_LEASE_LOST, EXIT_NO_DATABASE) else MAX_RESTART_DELAY_S
    return min(longest, max(MIN_RESTART_DELAY_S, 2 * last))


class Supervisor:
    """Keeps `count` worker processes running until it is stopped."""

    def __init__(
        self,
        plan: LaunchPlan,
        count: int,
        *,
        open_backend: Callable[[str], Awaitable[SupervisorBackend]],
        drain: float,
        say: Callable[[str], None],
        recycling: RecyclingRules = NEVER,
        reloading: bool = False,
    ) -> None:
        self._plan = plan
        self._count = count
        self._open_backend = open_backend
        self._drain = drain
        self._say = say
        self._recycling = recycling
        self._reloading = reloading
        self._reload = asyncio.Event()
        """Set when the application is loaded again; each reload replaces the event."""
        self._reported: asyncio.Event | None = None
        """Reload whose failure was reported.

        It is reported once, because every worker process fails in the same way.
        """
        self._launcher = WorkerLauncher(plan.command, plan.forkserver, say)
        self._children: set[SupervisedProcess] = set()
        self._stop = asyncio.Event()
        self.drained = False
        """True if the stop was requested through the API or CLI, not by a signal."""
        self.signalled = asyncio.Event()
        """Set when SIGTERM or SIGINT arrives."""
        self._urgent = False
        self._was_ready = False
        """True if at least one worker process has become ready."""
        self._opening = asyncio.Lock()
        self._url: str | None = None
        """Database or service of the workers, once one of them has connected."""
        self._schema_check: asyncio.Task[None] | None = None
        self._mismatch: SchemaMismatch | None = None
        """Set if the schema has changed so that no worker of this version can start."""
        self._lease_backend: SupervisorBackend | None = None
        self._maintenance: asyncio.Task[None] | None = None
        self._maintenance_backend: SupervisorBackend | None = None

    async def run(self) -> None:
        """Run until stopped by a signal, a drain request or `stop`.

        Raises:
            CannotRun: The application cannot be run at all.
            SchemaMismatch: The database was migrated while this node ran, and new workers cannot use it. The node has
                stopped as after a signal.
        """
        self.handle_signals()
        try:
            async with asyncio.TaskGroup() as group:
                reporting = group.create_task(self._report_drain(), name="holdfast drain report")
                supervising = [
                    group.create_task(self._supervise(n + 1), name=f"holdfast worker {n + 1}")
                    for n in range(self._count)
                ]
                await asyncio.wait(supervising)
                self._stop.set()
                reporting.cancel()
            if self._mismatch is not None:
                raise self._mismatch
        except* HoldfastError as errors:
            raise errors.exceptions[0] from None
        finally:
            if not self.drained:  # after a drain the caller may continue and still needs `signalled`
                for number in _SIGNALS:
                    asyncio.get_running_loop().remove_signal_handler(number)
            await self._close()

    def handle_signals(self) -> None:
        """Stop on SIGTERM and SIGINT from now on."""

        def on_signal() -> None:
            self.signalled.set()
            if self._children or not self._stop.is_set():  # after a drain there may be nothing left to stop
                self.stop()

        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, on_signal)

    def stop(self) -> None:
        """Stop claiming, finish running jobs and release the rest.

        A second call releases the running jobs now; a third one kills the workers.
        """
        if self._stop.is_set() and not self._urgent:
            self._urgent = True
            self._say("stopping now: running jobs are stopped and released")
            for child in self._children:
                child.shut_down(0)
            return
        if self._urgent:
            for child in self._children:
                child.kill()
            return
        self._stop.set()
        self._say("stopping: no more jobs are claimed")
        for child in self._children:
            child.shut_down(self._drain)

    def reload(self) -> None:
        """Load the application again: worker processes with the new code replace all others."""
        self._launcher.reload()
        self._reload.set()
        self._reload = asyncio.Event()

    def _drain_node(self) -> None:
        """Drain all workers because a drain of one of them was requested: drains apply to the node."""
        if not self._stop.is_set():
            self.drained = True
            self._say("draining: requested through the service")
            self.stop()

    async def _supervise(self, n: int) -> None:
        """Keep one worker process running: start another one whenever it ends or is to be replaced."""
        pause = 0.0
        retired: set[asyncio.Task[None]] = set()
        running: asyncio.Task[int] | None = None
        try:
            while not self._stop.is_set():
                child, reload = self._new_child(), self._reload
                started_at = time.monotonic()
                running = tasks.start(self._run_one(n, child), name=f"holdfast worker {n}", awaited=True)
                if reason := await self._wait_until_due(child, running, reload, retired):
                    self._say(f"worker {n} (process {child.pid}): {reason}; starting another")
                    finishing = tasks.start(
                        self._finish(n, child, running, reloaded=reload.is_set()), name=f"holdfast retired worker {n}"
                    )
                    retired.add(finishing)
                    finishing.add_done_callback(retired.discard)
                    continue
                try:
                    code = await running
                    ending = f"worker {n} (process {child.pid}) ended by {describe_exit(code)}"
                    lifetime = time.monotonic() - started_at if child.ready.is_set() else 0.0
                    pause = restart_delay(pause, code, at_work=child.crashed_at_work, lifetime=lifetime)
                    if code in (EXIT_LEASE_LOST, EXIT_NO_DATABASE):
                        self._start_schema_check()
                except Exception as error:
                    if self._reloading and isinstance(error, CannotRun):
                        await self._wait_for_change(error, reload)
                        continue
                    if isinstance(error, HoldfastError):
                        if not self._has_been_ready():
                            raise  # the configuration is wrong: report it to the caller
                        self._start_schema_check()
                    # A node that was ready before survives unexpected errors. The jobs are recovered by the next
                    # worker, or when the lease expires.
                    _LOG.exception("supervision of worker %d failed", n)
                    ending = f"supervision of worker {n} failed ({type(error).__name__}: {error})"
                    pause = restart_delay(pause, 1, at_work=False, lifetime=0.0)
                if self._stop.is_set():
                    break
                self._say(f"{ending}; starting another")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), pause)
            await asyncio.gather(*retired, return_exceptions=True)
        finally:
            await tasks.stop(running, *retired)

    def _new_child(self) -> SupervisedProcess:
        return SupervisedProcess(self._plan, self._launcher, self._open_backends, self._say, self._drain_node)

    async def _run_one(self, n: int, child: SupervisedProcess) -> int:
        """Run one worker process; return its exit code."""
        self._children.add(child)
        replacing = tasks.start(self._replace_blocked(child), name=f"holdfast worker {n} replacement")
        killing = tasks.start(self._kill_after_drain(child), name=f"holdfast worker {n} kill timer")
        try:
            return await child.run()
        finally:
            self._was_ready |= child.ready.is_set()
            self._children.discard(child)
            await tasks.stop(replacing, killing)

    async def _wait_until_due(
        self,
        child: SupervisedProcess,
        running: asyncio.Task[int],
        reload: asyncio.Event,
        retired: Collection[asyncio.Task[None]],
    ) -> str | None:
        """Wait until a worker is to be replaced; return why, or None if it ended by itself."""
        recycled = tasks.start(self._wait_for_recycling(child, retired), name="holdfast recycling", awaited=True)
        reloaded = tasks.start(reload.wait(), name="holdfast reload", awaited=True)
        try:
            await asyncio.wait([running, recycled, reloaded], return_when=asyncio.FIRST_COMPLETED)
            if running.done() or self._stop.is_set():
                return None
            if reloaded.done():
                child.drain(self._drain)
                return "the application has changed"
            child.retire()
            return recycled.result()
        finally:
            await tasks.stop(recycled, reloaded)

    async def _wait_for_recycling(self, child: SupervisedProcess, retired: Collection[asyncio.Task[None]]) -> str:
        """Return why a worker is due for recycling, as soon as it is.

        Waits until its predecessor has finished, so that there are at most two processes instead of one.
        """
        await child.ready.wait()
        while True:
            memory = resident(child.pid) or child.load.memory
            reason = recycling_reason(self._recycling, jobs=child.load.finished, memory=memory)
            if reason is not None and not retired:
                return reason
            await asyncio.sleep(_RECYCLING_INTERVAL_S)

    async def _finish(self, n: int, child: SupervisedProcess, running: asyncio.Task[int], *, reloaded: bool) -> None:
        """Wait for the end of a replaced worker; after a reload, kill it if it does not end."""
        await asyncio.wait([running], timeout=self._drain + KILL_TIMEOUT_S if reloaded else None)
        if not running.done():
            child.kill()
        try:
            code = await running
        except HoldfastError as error:  # such as an application that could not be loaded before it was changed
            self._say(f"worker {n} (process {child.pid}), which was replaced, failed: {error}")
            return
        if code:
            self._say(f"worker {n} (process {child.pid}), which was replaced, ended by {describe_exit(code)}")

    async def _wait_for_change(self, error: CannotRun, reload: asyncio.Event) -> None:
        """Report that the application cannot be loaded, and wait for a reload or the end."""
        if self._reported is not reload:
            self._reported = reload
            self._say(f"{error}; waiting for a change")
        waiting = [tasks.start(event.wait(), name="holdfast change", awaited=True) for event in (reload, self._stop)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await tasks.stop(*waiting)

    def _has_been_ready(self) -> bool:
        return self._was_ready or any(child.ready.is_set() for child in self._children)

    def _start_schema_check(self) -> None:
        """Check the schema in a task, because a database that hangs must not delay restarts."""
        if self._url is not None and (self._schema_check is None or self._schema_check.done()):
            self._schema_check = tasks.start(self._check_schema(self._url), name="holdfast schema check")

    async def _check_schema(self, url: str) -> None:
        """Stop the node if no worker of this version can use the database any longer."""
        try:
            backend = await self._open_backend(url)
        except SchemaMismatch as error:
            self._mismatch = error
            if not self._stop.is_set():
                self._say("the schema of the database has changed, so no worker of this version can start")
                self.stop()
        except HoldfastError:
            pass  # the database is unavailable: workers are started until it is back
        else:
            await backend.aclose()

    async def _replace_blocked(self, child: SupervisedProcess) -> None:
        """Replace a worker that has lost a slot, after its other jobs had time to finish."""
        await child.slot_lost.wait()
        child.drain(self._drain)
        await asyncio.sleep(self._drain + KILL_TIMEOUT_S)
        child.kill()

    async def _kill_after_drain(self, child: SupervisedProcess) -> None:
        """Kill a worker that does not exit after the drain because it is blocked."""
        await self._stop.wait()
        until = time.monotonic() + self._drain + KILL_TIMEOUT_S
        while time.monotonic() < until:
            await asyncio.sleep(0.1)
            if self._urgent:
                until = min(until, time.monotonic() + 2.0)
                await asyncio.sleep(max(0.0, until - time.monotonic()))
        child.kill()

    async def _report_drain(self) -> None:
        """Print the number of running jobs during a drain: on each change, and every few seconds."""
        await self._stop.wait()
        started_at = time.monotonic()
        last, repeat_at = 0, 0.0
        while not self._urgent:
            running, now = sum(child.load.running for child in self._children), time.monotonic()
            if running and (running != last or now >= repeat_at):
                left = max(0.0, self._drain - (now - started_at))
                jobs = "1 running job" if running == 1 else f"{running} running jobs"
                hint = "Ctrl-C or SIGTERM again to stop now"
                self._say(f"waiting for {jobs}, at most {left:.0f} s more; {hint}" if left else f"releasing {jobs}")
                repeat_at = now + _REPORT_INTERVAL_S
            last = running
            await asyncio.sleep(1.0)

    async def _open_backends(self, url: str) -> SupervisorBackend:
        """Return the backend for leases; open it and the one for maintenance on first use.

        They are separate, so that maintenance cannot delay a renewal.
        """
        async with self._opening:
            self._url = url
            if self._lease_backend is None:
                self._lease_backend = await self._open_backend(url)
                self._maintenance_backend = await self._open_backend(url)
                self._maintenance = tasks.start(
                    self._maintenance_backend.run_maintenance(asyncio.Event()), name="holdfast maintenance"
                )
        return self._lease_backend

    async def _close(self) -> None:
        await self._launcher.aclose()
        await tasks.stop(self._maintenance, self._schema_check)
        for backend in (self._maintenance_backend, self._lease_backend):
            if backend is not None:
                await backend.aclose()
