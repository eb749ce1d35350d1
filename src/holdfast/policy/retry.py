"""Retry delays."""

from holdfast.model.job import RetryRule
from holdfast.model.time import Duration, seconds

MAX_WAIT = seconds(366 * 86_400)
_MAX_SHIFT = 62


def backoff(rule: RetryRule, attempt: int, rand: float) -> Duration:
    """Return the delay after failed attempt number `attempt` (from 1), with the rule's jitter.

    `rand` is a uniform random number in [0, 1). The delay lies within [w·(1−jitter), w·(1+jitter)], where w is
    min(cap, base·2^(attempt−1)), or the attempt's entry of `delays`, whose last entry repeats.
    """
    if rule.delays:
        plain = rule.delays[min(attempt, len(rule.delays)) - 1]
    else:
        plain = Duration(min(rule.cap, rule.base << min(max(attempt - 1, 0), _MAX_SHIFT)))
    spread = 1 + rule.jitter * (2 * rand - 1)
    return Duration(min(MAX_WAIT, max(0, round(plain * spread))))


def clamp_wait(wait: Duration, *, maximum: Duration) -> Duration:
    """Clamp a wait that a handler or remote server requested to [0, `maximum`]."""
    return Duration(max(0, min(wait, maximum)))
