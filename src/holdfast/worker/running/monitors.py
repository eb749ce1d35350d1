"""Monitors for running handlers: lost jobs and a blocked event loop."""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

from holdfast.errors import HoldfastError
from holdfast.model.job import HeldJob
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.ports import JobSource
from holdfast.worker.running.queue_runner import QueueRunner
from holdfast.worker.running.run import Run

CHECK_INTERVAL_S = 1.0
"""Seconds between checks that running jobs are still held; shorter jobs are not checked."""

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
        with contextlib.suppress(HoldfastError):  # the database is unavailable: the lease decides
            held = [held for _, run in to_check.values() if (held := _held(run)) is not None]
            for job in await source.lost(held):
                queue, run = to_check[job]
                queue.stop(run, "lost")


class EventLoopMonitor:
    """Thread that detects a blocked event loop and names the handler that blocks it."""

    def __init__(self, registry: Registry, warn: Callable[[str, float], None]) -> None:
        self._registry = registry
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

    def _watch(self) -> None:
        warned = 0.0
        while not self._stop.wait(BLOCKED_AFTER_S / 2):
            blocked = time.monotonic() - self._last_tick
            if blocked > BLOCKED_AFTER_S and self._last_tick != warned:
                warned = self._last_tick
                self._warn(self._blocking_handler(sys._current_frames().get(self._main)), blocked)  # noqa: SLF001 - the documented way

    def _blocking_handler(self, frame: FrameType | None) -> str:
        handlers = {code_of(handler.function): handler.type for handler in self._registry}
        while frame is not None:
            if name := handlers.get(frame.f_code):
                return name
            frame = frame.f_back
        return "unknown"


def code_of(function: object) -> CodeType | None:
    """Return the code object of a handler, without its decorators."""
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        function = inner
    return getattr(function, "__code__", None)


def _held(run: Run) -> HeldJob | None:
    """Return the job of a run with its fence and worker."""
    return None if run.job.worker is None else HeldJob(run.job.id, run.job.fence, run.job.worker)
