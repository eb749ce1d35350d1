"""Looks after running handlers: stops those whose job was taken away, names those that block the loop."""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

from holdfast.errors import HoldfastError
from holdfast.model.job import Held
from holdfast.worker.handlers.registry import Registry
from holdfast.worker.ports import Source
from holdfast.worker.running.queue_runner import Run, Slots

LOOK_EVERY = 1.0
"""Seconds between looks at whether running jobs are still held; jobs shorter than this are not looked at."""

BLOCKED_AFTER = 1.0


async def stop_the_lost(source: Source, slots: Sequence[Slots]) -> None:
    """Stop handlers whose job was cancelled or given to somebody else, until cancelled."""
    while True:
        await asyncio.sleep(LOOK_EVERY)
        since = time.monotonic() - LOOK_EVERY / 2
        old = {
            run.job.id: (queue, run) for queue in slots for run in queue.runs() if run.since < since and run.why is None
        }
        if not old:
            continue
        with contextlib.suppress(HoldfastError):  # the database is away: the lease decides
            for job in await source.lost([h for _, run in old.values() if (h := _held(run)) is not None]):
                queue, run = old[job]
                queue.stop(run, "lost")


class LoopWatch:
    """A thread that notices when the event loop stands still, and says which handler is to blame."""

    def __init__(self, registry: Registry, warn: Callable[[str, float], None]) -> None:
        self._registry = registry
        self._warn = warn
        self._beat = time.monotonic()
        self._main = threading.get_ident()
        self._stop = threading.Event()

    async def run(self) -> None:
        """Watch until cancelled."""
        thread = threading.Thread(target=self._watch, name="holdfast loop watch", daemon=True)
        thread.start()
        try:
            while True:
                self._beat = time.monotonic()
                await asyncio.sleep(BLOCKED_AFTER / 4)
        finally:
            self._stop.set()

    def _watch(self) -> None:
        warned = 0.0
        while not self._stop.wait(BLOCKED_AFTER / 2):
            stands = time.monotonic() - self._beat
            if stands > BLOCKED_AFTER and self._beat != warned:
                warned = self._beat
                self._warn(self._culprit(sys._current_frames().get(self._main)), stands)  # noqa: SLF001 - the documented way

    def _culprit(self, frame: FrameType | None) -> str:
        handlers = {code_of(handler.function): handler.type for handler in self._registry}
        while frame is not None:
            if name := handlers.get(frame.f_code):
                return name
            frame = frame.f_back
        return "unknown"


def code_of(function: object) -> CodeType | None:
    """The code a handler runs, under whatever wraps it."""
    while (inner := getattr(function, "__wrapped__", None)) is not None:
        function = inner
    return getattr(function, "__code__", None)


def _held(run: Run) -> Held | None:
    """The run's job, as its holder names it."""
    return None if run.job.worker is None else Held(run.job.id, run.job.fence, run.job.worker)
