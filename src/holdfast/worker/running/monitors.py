"""Monitors for running handlers: lost jobs and a blocked event loop."""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

from holdfast.errors import HoldfastError
from holdfast.model.ids import WorkerId
from holdfast.model.job import HeldJob
from holdfast.model.worker import UNKNOWN_CODE
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.ports import JobSource
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.running.queue_runner import QueueRunner
from holdfast.worker.running.run import AttemptKey, Run

CHECK_INTERVAL_S = 1.0
"""Seconds between checks that running jobs are still held; shorter jobs are not checked."""

COMPARE_INTERVAL_S = 15.0
"""Seconds between comparisons of the running jobs with those that the database knows."""

CONFIRM_DELAY_S = 1.0
MAX_HELD_JOBS = 100_000

BLOCKED_AFTER_S = 1.0
"""Seconds without a tick after which the event loop counts as blocked."""


async def cancel_lost_jobs(source: JobSource, queue_runners: Sequence[QueueRunner]) -> None:
    """Stop handlers whose job was cancelled or is held by another worker. Runs until cancelled."""
    while True:
        await asyncio.sleep(CHECK_INTERVAL_S)
        since = time.monotonic() - CHECK_INTERVAL_S / 2
        to_check = {
            run.job.id: (queue, run)
            for queue in queue_runners
            for run in queue.runs()
            if run.since < since and run.stop_reason is None
        }
        if not to_check:
            continue
        held = [held for _, run in to_check.values() if (held := _held(run)) is not None]
        try:
            lost = await source.lost(held)
        except HoldfastError:  # the database is unavailable: the lease decides
            for queue in queue_runners:  # after a failover, the new server may lack the latest reports
                queue.compare_held()
            continue
        for job in lost:
            queue, run = to_check[job]
            queue.stop(run, "lost")


async def release_unknown_jobs(source: JobSource, worker: WorkerId, queue_runners: Sequence[QueueRunner]) -> None:
    """Release jobs that this worker holds in the database but does not run, until cancelled.

    A failover to a server that lacks the latest writes brings back jobs that this worker has reported.
    """
    while True:
        await asyncio.sleep(COMPARE_INTERVAL_S)
        with contextlib.suppress(HoldfastError):  # the database is unavailable: the lease decides
            unknown = await _unknown_attempts(source, worker, queue_runners)
            if not unknown:
                continue
            # Claims and reports that were in flight are complete when the same attempts are unknown again.
            await asyncio.sleep(CONFIRM_DELAY_S)
            if unknown & await _unknown_attempts(source, worker, queue_runners):
                for queue in queue_runners:
                    queue.compare_held()


async def _unknown_attempts(
    source: JobSource, worker: WorkerId, queue_runners: Sequence[QueueRunner]
) -> set[AttemptKey]:
    # Compared with the state before and after the query: claims and reports may complete meanwhile.
    known = set[AttemptKey]().union(*[queue.known_attempts() for queue in queue_runners])
    held = await source.held_attempts(worker, MAX_HELD_JOBS)
    return set(held).difference(known, *[queue.known_attempts() for queue in queue_runners])


class EventLoopMonitor:
    """Thread that detects a blocked event loop and names the handler that blocks it.

    It warns once per block, and records the block in the shared state, from which the supervisor reports it.
    """

    def __init__(self, registry: Registry, shared_state: SharedState, warn: Callable[[str, float], None]) -> None:
        self._registry = registry
        self._shared_state = shared_state
        self._warn = warn
        self._last_tick = time.monotonic()
        self._main = threading.get_ident()
        self._stop = threading.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        thread = threading.Thread(target=self._watch, name="holdfast loop watch", daemon=True)
        thread.start()
        try:
            while True:
                self._last_tick = time.monotonic()
                await asyncio.sleep(BLOCKED_AFTER_S / 4)
        finally:
            self._stop.set()
            thread.join()  # before the shared state is unmapped

    def _watch(self) -> None:
        reported = 0.0
        while not self._stop.wait(BLOCKED_AFTER_S / 2):
            last_tick = self._last_tick
            blocked = time.monotonic() - last_tick
            if blocked > BLOCKED_AFTER_S:
                if last_tick != reported:
                    reported = last_tick
                    handler = self._blocking_handler(sys._current_frames().get(self._main))  # noqa: SLF001 - the documented way
                    self._shared_state.record_blocked(last_tick, handler)
                    self._warn(handler, blocked)
            elif reported:
                reported = 0.0
                self._shared_state.clear_blocked()

    def _blocking_handler(self, frame: FrameType | None) -> str:
        handlers = {code_of(handler.function): handler.type for handler in self._registry}
        while frame is not None:
            if name := handlers.get(frame.f_code):
                return name
            frame = frame.f_back
        return UNKNOWN_CODE


def code_of(function: object) -> CodeType | None:
    """Return the code object of a handler, without its decorators."""
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        function = inner
    return getattr(function, "__code__", None)


def _held(run: Run) -> HeldJob | None:
    """Return the job of a run with its fence and worker."""
    return None if run.job.worker is None else HeldJob(run.job.id, run.job.fence, run.job.worker)
