"""Rate at which a queue runner completes jobs."""

_MIN_SAMPLE_S = 0.02
_DECAY = 0.7
"""Weight that an older rate keeps after a tenth of a second."""


class CompletionRate:
    """Completed jobs per second: rises at once and decays slowly."""

    def __init__(self, now: float) -> None:
        self.count = 0
        """Jobs completed since the last measurement."""
        self._rate = 0.0
        self._measured_at = now

    def rate(self, now: float) -> float:
        """Measure if the last measurement is old enough; return the rate."""
        if (elapsed := now - self._measured_at) >= _MIN_SAMPLE_S:
            rate, self.count, self._measured_at = self.count / elapsed, 0, now
            self._rate = max(rate, rate + (self._rate - rate) * _DECAY ** (elapsed / 0.1))
        return self._rate
