"""What tenants received against what they were entitled to, seen afterwards: from figures, step by step.

In each step what was served is divided anew, as deficit round robin divides it: whoever had jobs waiting may have as
much as its weight among all who had, and whoever had none gets what it asked for, as long as that is no more than its
weight's part.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.model.time import Duration, Instant, seconds

WAITED = seconds(1)
"""A job that was due for longer than this before it started had to wait for its turn: its tenant had a backlog."""


class Step(NamedTuple):
    """What a tenant's attempts that ended in the step from `at` on cost, and the longest that one had waited."""

    tenant: str
    at: Instant
    cost: int
    waited: Duration


class TenantShare(NamedTuple):
    """One tenant's part of all that was served."""

    tenant: str
    weight: int
    received: int
    """Cost."""
    entitled: float
    """Cost."""
    backlogged: int
    """In how many steps it had jobs that waited."""

    @property
    def ratio(self) -> float | None:
        """What it received for each unit that it was entitled to; None if it was entitled to nothing."""
        return self.received / self.entitled if self.entitled else None


class Fairness(NamedTuple):
    """All tenants of a window."""

    served: int
    """Cost, of all."""
    jain: float | None
    """1 if all who had jobs waiting received the same part of what they were entitled to; None if there were none."""
    tenants: list[TenantShare]
    """Those first that are furthest below what they were entitled to."""


def fairness(
    steps: Iterable[Step],
    waiting: Mapping[str, Instant],
    weights: Mapping[str, int],
    *,
    since: Instant,
    until: Instant,
    step: Duration,
) -> Fairness:
    """Shares over a window. `waiting`: tenants whose jobs wait at its end, and since when; weights not named are 1."""
    served: dict[Instant, Counter[str]] = defaultdict(Counter)
    found = list(steps)
    for each in found:
        served[each.at][each.tenant] += each.cost
    backlogged = _backlogged(found, waiting, since, until, step)
    received: Counter[str] = Counter()
    entitled: dict[str, float] = defaultdict(float)
    for at, here in served.items():
        received.update(here)
        for tenant, part in divide(+here, backlogged[at], weights).items():
            entitled[tenant] += part
    times = Counter(tenant for names in backlogged.values() for tenant in names)
    shares = [
        TenantShare(tenant, weights.get(tenant, 1), received[tenant], entitled[tenant], times[tenant])
        for tenant in {*+received, *entitled, *times}
    ]
    ratios = [ratio for share in shares if share.backlogged and (ratio := share.ratio) is not None]
    shares.sort(key=lambda share: (share.received - share.entitled, share.tenant))
    return Fairness(received.total(), jain(ratios), shares)


def _backlogged(
    found: Iterable[Step], waiting: Mapping[str, Instant], since: Instant, until: Instant, step: Duration
) -> dict[Instant, set[str]]:
    """Who had jobs waiting in which step."""
    backlogged: dict[Instant, set[str]] = defaultdict(set)
    for each in found:
        if each.waited > WAITED:
            # It ended in this step at the latest, and began to wait so much earlier.
            for at in _steps(max(since, Instant(each.at - each.waited)), each.at, step):
                backlogged[at].add(each.tenant)
    for tenant, began in waiting.items():
        if began < until - WAITED:
            for at in _steps(max(since, began), until, step):
                backlogged[at].add(tenant)
    return backlogged


def divide(served: Mapping[str, int], backlogged: Iterable[str], weights: Mapping[str, int]) -> dict[str, float]:
    """What was served in one step, as it should have been divided: to each by weight, to nobody more than it asked for.

    Whoever had a backlog asked for any amount, the others for what they received.
    """
    hungry = set(backlogged)
    left = float(sum(served.values()))
    entitled: dict[str, float] = {}
    # Those who ask for least for their weight come first: what they leave is the others'.
    modest = sorted(
        (each for each in served if each not in hungry), key=lambda each: served[each] / weights.get(each, 1)
    )
    weight = sum(weights.get(each, 1) for each in {*served, *hungry})
    for tenant in modest:
        own = weights.get(tenant, 1)
        entitled[tenant] = min(float(served[tenant]), left * own / weight)
        left -= entitled[tenant]
        weight -= own
    for tenant in hungry:
        entitled[tenant] = left * weights.get(tenant, 1) / weight
    if not hungry and left > 0:  # nobody waited: all had what they asked for
        return {tenant: float(cost) for tenant, cost in served.items()}
    return entitled


def jain(ratios: Iterable[float]) -> float | None:
    """Jain's index: 1 if all are the same, 1/n if one of n has everything; None of nothing."""
    found = list(ratios)
    squares = sum(each * each for each in found)
    return sum(found) ** 2 / (len(found) * squares) if squares else None


def _steps(first: Instant, last: Instant, step: Duration) -> Iterable[Instant]:
    return (Instant(at) for at in range(first - first % step, last + 1, step))
