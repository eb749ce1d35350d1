"""Sign of life of a worker process: a time in the shared state that a thread updates."""

import threading
import time

from holdfast.model.worker import Unresponsiveness
from holdfast.policy.unresponsive import find_unresponsiveness
from holdfast.worker.processes.shared_state import SharedState

INTERVAL_S = 0.5
"""Seconds between two signs of life."""

_MAX_STEP_S = 2.0
"""Longest time between two observations that counts; beyond it, the observer was frozen."""


class SignOfLife:
    """Thread that gives signs of life, even while the event loop is blocked."""

    def __init__(self, shared_state: SharedState) -> None:
        self._shared_state = shared_state
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast sign of life", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread before the shared state is unmapped."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._shared_state.alive_at = time.monotonic()
            if self._stop.wait(INTERVAL_S):
                return


class SilenceTimer:
    """Measures for how long a process has given no sign of life.

    Only time during which the observer itself ran is counted. A process that was frozen together with its supervisor
    therefore has time to give its next sign.
    """

    def __init__(self, now: float) -> None:
        self._observed_at = now
        self._sign = 0.0
        self.silence = 0.0
        """Seconds of silence so far."""

    def observe(self, sign: float, now: float) -> float:
        """Take note of the last sign of life; return the seconds of silence."""
        step, self._observed_at = min(now - self._observed_at, _MAX_STEP_S), now
        self.silence = self.silence + step if sign == self._sign else 0.0
        self._sign = sign
        return self.silence


def read_unresponsiveness(shared_state: SharedState, silence: float, now: float) -> Unresponsiveness | None:
    """Return how a worker process fails to respond; `silence` is in seconds."""
    since, blocked_by = shared_state.blocked() or (now, "")
    return find_unresponsiveness(silence, now - since, blocked_by)
