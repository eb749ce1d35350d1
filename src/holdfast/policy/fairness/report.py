"""Fairness report: service received by tenants compared with their fair share.

For each time step, the service of all tenants is divided again by weighted max-min fairness, the division that deficit
round robin approximates: a tenant without a backlog is entitled to what it received, up to its weighted share, and
tenants with a backlog divide the remainder by weight.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from holdfast.model.time import Duration, Instant, seconds

MIN_BACKLOG_WAIT = seconds(1)
"""A tenant has a backlog while a job of it has been due for longer than this."""


class ServiceSample(NamedTuple):
    """Cost and longest wait of a tenant's attempts that ended in the time step at `at`."""

    tenant: str
    at: Instant
    cost: int
    waited: Duration


class TenantShare(NamedTuple):
    """Service of one tenant over a window."""

    tenant: str
    weight: int
    received: int
    """Cost of the attempts that ended."""
    entitled: float
    """Cost that a fair division would have given it."""
    backlogged: int
    """Number of steps in which it had a backlog."""

    @property
    def ratio(self) -> float | None:
        """Received divided by entitled; None if it was entitled to nothing."""
        return self.received / self.entitled if self.entitled else None


class Fairness(NamedTuple):
    """Fairness over a window."""

    served: int
    """Total cost of all tenants."""
    jain: float | None
    """Jain's index over the ratios of tenants that had a backlog; None if there were none."""
    tenants: list[TenantShare]
    """Shares, sorted by received minus entitled: the most disadvantaged tenant first."""


def fairness(
    samples: Iterable[ServiceSample],
    waiting: Mapping[str, Instant],
    weights: Mapping[str, int],
    *,
    since: Instant,
    until: Instant,
    step: Duration,
) -> Fairness:
    """Compute the fairness report of a window.

    Args:
        samples: Service per tenant and time step.
        waiting: Tenants whose jobs still wait at the end of the window, with the time since when.
        weights: Weights of tenants; the default is 1.
        since: Start of the window.
        until: End of the window.
        step: Length of a time step.
    """
    served: dict[Instant, Counter[str]] = defaultdict(Counter)
    samples = list(samples)
    for sample in samples:
        served[sample.at][sample.tenant] += sample.cost
    backlogged = _backlogged(samples, waiting, since, until, step)
    received: Counter[str] = Counter()
    entitled: dict[str, float] = defaultdict(float)
    for at, costs in served.items():
        received.update(costs)
        for tenant, part in divide(+costs, backlogged[at], weights).items():
            entitled[tenant] += part
    backlogged_steps = Counter(tenant for names in backlogged.values() for tenant in names)
    shares = [
        TenantShare(tenant, weights.get(tenant, 1), received[tenant], entitled[tenant], backlogged_steps[tenant])
        for tenant in {*+received, *entitled, *backlogged_steps}
    ]
    ratios = [ratio for share in shares if share.backlogged and (ratio := share.ratio) is not None]
    shares.sort(key=lambda share: (share.received - share.entitled, share.tenant))
    return Fairness(received.total(), jain(ratios), shares)


def _backlogged(
    samples: Iterable[ServiceSample], waiting: Mapping[str, Instant], since: Instant, until: Instant, step: Duration
) -> dict[Instant, set[str]]:
    """Return the tenants with a backlog in each time step."""
    backlogged: dict[Instant, set[str]] = defaultdict(set)
    for sample in samples:
        if sample.waited > MIN_BACKLOG_WAIT:
            # The attempt ended in this step, so it waited in the steps before it.
            for at in _steps(max(since, Instant(sample.at - sample.waited)), sample.at, step):
                backlogged[at].add(sample.tenant)
    for tenant, began in waiting.items():
        if began < until - MIN_BACKLOG_WAIT:
            for at in _steps(max(since, began), until, step):
                backlogged[at].add(tenant)
    return backlogged


def divide(served: Mapping[str, int], backlogged: Iterable[str], weights: Mapping[str, int]) -> dict[str, float]:
    """Divide the service of one time step by weight, at most its demand to each tenant.

    The demand of a tenant with a backlog is unlimited; that of the rest is what they received.
    """
    unsatisfied = set(backlogged)
    left = float(sum(served.values()))
    entitled: dict[str, float] = {}
    # Water-filling: the smallest demand per weight first, so that its remainder goes to the larger ones.
    satisfied = sorted(
        (tenant for tenant in served if tenant not in unsatisfied),
        key=lambda tenant: served[tenant] / weights.get(tenant, 1),
    )
    total_weight = sum(weights.get(tenant, 1) for tenant in {*served, *unsatisfied})
    for tenant in satisfied:
        weight = weights.get(tenant, 1)
        entitled[tenant] = min(float(served[tenant]), left * weight / total_weight)
        left -= entitled[tenant]
        total_weight -= weight
    for tenant in unsatisfied:
        entitled[tenant] = left * weights.get(tenant, 1) / total_weight
    if not unsatisfied and left > 0:  # without a backlog every tenant received its demand
        return {tenant: float(cost) for tenant, cost in served.items()}
    return entitled


def jain(ratios: Iterable[float]) -> float | None:
    """Return Jain's fairness index; None for no ratios.

    It is 1 if all ratios are equal, and 1/n if one of n has everything.
    """
    values = list(ratios)
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


def _steps(first: Instant, last: Instant, step: Duration) -> Iterable[Instant]:
    return (Instant(at) for at in range(first - first % step, last + 1, step))
