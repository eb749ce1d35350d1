"""Circuit breaker of a delivery destination: when it opens, and when a probe is due."""

from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.model.breaker import Breaker, BreakerState, Permit
from holdfast.model.time import Duration, Instant, after, seconds
from holdfast.policy.text import escape_unprintable, sanitize

MAX_ERROR_LENGTH = 300
_MAX_DOUBLINGS = 30
_PORTS = {"http": 80, "https": 443}


class BreakerRules(NamedTuple):
    """Thresholds and cooldowns of a circuit breaker."""

    failures: int = 5
    """Consecutive failures, across all workers, that open the breaker."""
    cooldown: Duration = seconds(15)
    """Time until the first probe; each failed probe doubles it, up to `max_cooldown`."""
    max_cooldown: Duration = seconds(60)


def destination_of(url: str) -> str | None:
    """Return the scheme, host and port of a URL, which identify its breaker; None if incomplete."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
        host = parts.hostname
    except ValueError:
        return None
    if not host or port is None:
        return None
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host.rstrip('.')}:{port}"


def request_permit(
    breaker: Breaker | None, *, now: Instant, probe_for: Duration, rules: BreakerRules, rand: float
) -> tuple[Permit, Breaker | None]:
    """Decide whether a delivery may be sent now.

    Returns the permit, and the changed breaker or None if it does not change.

    A rejected delivery gets a wait with jitter, so that waiting deliveries do not all return at the same instant.

    Args:
        breaker: State of the destination's breaker; None means closed.
        now: Current time.
        probe_for: Time after which a probe without a result is considered lost.
        rules: Thresholds and cooldowns.
        rand: Uniform random number in [0, 1).
    """
    if breaker is None or breaker.state is BreakerState.CLOSED:
        return Permit(), None
    due = breaker.until or now
    if now < due:
        # A probe usually ends long before it times out, so a delivery waits for it at most for the first cooldown.
        left = due - now if breaker.state is BreakerState.OPEN else min(due - now, rules.cooldown)
        return Permit(wait=Duration(left + round(rand * max(left, seconds(1)) / 2))), None
    probing = breaker._replace(state=BreakerState.HALF_OPEN, until=after(now, probe_for))
    return Permit(probe=True), probing


def on_success(breaker: Breaker | None) -> Breaker | None:
    """Return the breaker after a successful delivery; None if it does not change."""
    if breaker is None or (breaker.state is BreakerState.CLOSED and not breaker.failures):
        return None
    return breaker._replace(state=BreakerState.CLOSED, failures=0, openings=0, until=None)


def on_failure(breaker: Breaker, error: str, *, probe: bool, now: Instant, rules: BreakerRules) -> Breaker | None:
    """Return the breaker after a failed delivery; None if it does not change.

    While the breaker is not closed, only the probe's result counts: other deliveries were sent before it opened.
    """
    counted = breaker._replace(
        failures=breaker.failures + 1, error=sanitize(escape_unprintable(error), MAX_ERROR_LENGTH)
    )
    if breaker.state is BreakerState.CLOSED:
        return _open(counted, now, rules) if counted.failures >= rules.failures else counted
    return _open(counted, now, rules) if probe and breaker.state is BreakerState.HALF_OPEN else None


def _open(breaker: Breaker, now: Instant, rules: BreakerRules) -> Breaker:
    cooldown = min(rules.max_cooldown, rules.cooldown << min(breaker.openings, _MAX_DOUBLINGS))
    openings = breaker.openings + 1
    return breaker._replace(state=BreakerState.OPEN, openings=openings, until=after(now, Duration(cooldown)))
