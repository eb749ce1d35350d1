"""When a destination is given a rest, and when it is tried again."""

from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.model.breaker import Breaker, BreakerState, Permit
from holdfast.model.time import Duration, Instant, after, seconds
from holdfast.policy.text import escaped, sanitize

MAX_ERROR_LENGTH = 300
_PORTS = {"http": 80, "https": 443}


class BreakerRules(NamedTuple):
    """What opens a breaker, and how long it stays so."""

    failures: int = 5
    """In a row, from any worker."""
    rest: Duration = seconds(15)
    """Until the first probe; each probe that fails doubles it."""
    longest: Duration = seconds(60)


def destination(url: str) -> str | None:
    """Scheme, host and port of a URL, as breakers are named; None for what has none of them."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        host = parts.hostname
    except ValueError:
        return None
    if not host or port is None:
        return None
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host.rstrip('.')}:{port}"


def ask(
    breaker: Breaker | None, *, now: Instant, probe_for: Duration, rules: BreakerRules, dice: float
) -> tuple[Permit, Breaker | None]:
    """Whether a delivery may go out now, and what changes by that. A probe is given up after `probe_for`.

    Those who are turned away come back spread over the time that follows, lest all come at the same instant.
    """
    if breaker is None or breaker.state is BreakerState.CLOSED:
        return Permit(), None
    due = breaker.until or now
    if now < due:
        # A probe is back long before it is given up, as a rule: nobody waits for that longer than for the first one.
        left = due - now if breaker.state is BreakerState.OPEN else min(due - now, rules.rest)
        return Permit(wait=Duration(left + round(dice * max(left, seconds(1)) / 2))), None
    probing = breaker._replace(state=BreakerState.HALF_OPEN, until=after(now, probe_for))
    return Permit(probe=True), probing


def succeeded(breaker: Breaker | None) -> Breaker | None:
    """What changes when the destination answered; None when nothing does."""
    if breaker is None or (breaker.state is BreakerState.CLOSED and not breaker.failures):
        return None
    return breaker._replace(state=BreakerState.CLOSED, failures=0, openings=0, until=None)


def failed(breaker: Breaker, error: str, *, probe: bool, now: Instant, rules: BreakerRules) -> Breaker | None:
    """What changes when the destination did not answer as it should; None when nothing does.

    While it is open, only a probe tells something new: all others went out before.
    """
    told = breaker._replace(failures=breaker.failures + 1, error=sanitize(escaped(error), MAX_ERROR_LENGTH))
    if breaker.state is BreakerState.CLOSED:
        return _opened(told, now, rules) if told.failures >= rules.failures else told
    return _opened(told, now, rules) if probe and breaker.state is BreakerState.HALF_OPEN else None


def _opened(breaker: Breaker, now: Instant, rules: BreakerRules) -> Breaker:
    rest = min(rules.longest, rules.rest << min(breaker.openings, 30))
    openings = breaker.openings + 1
    return breaker._replace(state=BreakerState.OPEN, openings=openings, until=after(now, Duration(rest)))
