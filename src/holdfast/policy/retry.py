"""How long to wait before the next attempt."""

from holdfast.model.job import RetryRule
from holdfast.model.time import Duration, seconds

MAX_WAIT = seconds(366 * 86_400)
_MAX_SHIFT = 62


def backoff(rule: RetryRule, attempt: int, dice: float) -> Duration:
    """The wait after the failed attempt number `attempt` (from 1), spread by the rule's jitter.

    `dice` is a chance in [0, 1). The wait lies within [w·(1−jitter), w·(1+jitter)], where w is
    min(cap, base·2^(attempt−1)), or the attempt's entry of `delays`, whose last entry repeats.
    """
    if rule.delays:
        plain = rule.delays[min(attempt, len(rule.delays)) - 1]
    else:
        plain = Duration(min(rule.cap, rule.base << min(max(attempt - 1, 0), _MAX_SHIFT)))
    spread = 1 + rule.jitter * (2 * dice - 1)
    return Duration(min(MAX_WAIT, max(0, round(plain * spread))))


def honour(asked: Duration, *, longest: Duration) -> Duration:
    """A wait somebody else asked for, such as `Retry-After`, within bounds."""
    return Duration(max(0, min(asked, longest)))
