"""Submission quotas of a tenant: cost per sliding window, and number of unfinished jobs.

Pure functions over a `UsageWindow`, the stored usage of one tenant; the caller supplies the time and exact counts.

The window is divided into 60 slices. The current slice and the 60 before it are added up, so that the sum covers
everything accepted within one window, and nothing older than a window and one slice. The backlog is an upper bound: the
last exact count plus everything accepted since.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from holdfast.errors import BacklogFull, HoldfastError, OverLimit
from holdfast.model.access import Quotas
from holdfast.model.job import NewJob
from holdfast.model.time import Duration, Instant, in_seconds, seconds
from holdfast.policy.rate_limit import WindowSnapshot, format_window, rate_limited

SLICES = 60
DEFAULT_WINDOW = seconds(60)
"""Default window of the rate quota."""

MIN_RECOUNT_INTERVAL = Duration(10_000)
MAX_RECOUNT_INTERVAL = seconds(1)
MIN_COUNT_LIFETIME = seconds(10)
MAX_QUEUES = 128
"""Queues with a stored backlog estimate; other queues are counted again when needed."""

_MAX_DOUBLINGS = 16
_COUNT_LIFETIME_PER_JOB = 100
"""Lifetime of a count in microseconds per counted job: large counts are expensive to repeat."""


class TenantQuota(NamedTuple):
    """Effective quota of a tenant; None means unlimited."""

    rate: int | None = None
    """Maximum cost submitted per `window`."""
    window: Duration = DEFAULT_WINDOW
    backlog: int | None = None
    """Maximum number of unfinished jobs."""
    queue_backlog: int | None = None
    """Maximum number of unfinished jobs per queue."""

    @property
    def is_limited(self) -> bool:
        """True if any quota is set."""
        return self.rate is not None or self.backlog is not None or self.queue_backlog is not None


class Demand(NamedTuple):
    """Cost and number of jobs of one submission, which is accepted or rejected as a whole."""

    cost: int
    queues: Mapping[str, int]
    """Number of jobs per queue."""

    @property
    def jobs(self) -> int:
        """Total number of jobs."""
        return sum(self.queues.values())


class BacklogEstimate(Struct, frozen=True, array_like=True):
    """Upper bound of the number of unfinished jobs: the last count plus the jobs accepted since."""

    upper_bound: int
    counted: int
    """Result of the last count."""
    at: Instant
    """Time of the last count."""
    refusals: int = 0
    """Consecutive counts that left too little room for the demand."""


class UsageWindow(Struct, frozen=True, array_like=True):
    """Stored usage of a tenant with a quota."""

    window: int = 0
    """Window that the slices divide."""
    newest: int = 0
    """Number of the latest slice, counted from 1970."""
    costs: tuple[int, ...] = ()
    """Accepted cost per slice, latest first."""
    total: BacklogEstimate | None = None
    queues: dict[str, BacklogEstimate] = {}


class CountRequest(NamedTuple):
    """Counts of unfinished jobs that are needed before the demands can be admitted or rejected."""

    total: bool
    queues: tuple[str, ...]


_DECODE = msgspec.msgpack.Decoder(UsageWindow).decode
_ENCODE = msgspec.msgpack.Encoder().encode


def decode(state: bytes) -> UsageWindow:
    """Decode stored usage; no bytes mean no usage."""
    return _DECODE(state) if state else UsageWindow()


def encode(usage: UsageWindow) -> bytes:
    """Encode usage for storage."""
    return _ENCODE(usage)


def quota_of(quotas: Quotas | None, defaults: TenantQuota) -> TenantQuota:
    """Return a tenant's effective quota: its own settings, else the installation's defaults."""
    if quotas is None:
        return defaults
    return TenantQuota(
        defaults.rate if quotas.rate is None else quotas.rate,
        defaults.window if quotas.rate_window is None else quotas.rate_window,
        defaults.backlog if quotas.backlog is None else quotas.backlog,
        defaults.queue_backlog if quotas.queue_backlog is None else quotas.queue_backlog,
    )


def demand_of(jobs: Iterable[NewJob]) -> Demand:
    """Return the total demand of the jobs of one submission."""
    cost = 0
    queues: Counter[str] = Counter()
    for job in jobs:
        cost += max(1, job.spec.cost)
        queues[job.spec.queue] += 1
    return Demand(cost, queues)


def after_clock_step(usage: UsageWindow, now: Instant) -> UsageWindow:
    """Adjust the usage if the clock stepped back by more than a window.

    The latest slice then becomes the current one.

    After a smaller step, the usage is unchanged and the latest slice stays open until the clock reaches it again.
    Neither case forgets usage too early.
    """
    if not usage.costs or usage.newest - now // _slice_width(usage.window) <= SLICES:
        return usage
    return msgspec.structs.replace(usage, newest=now // _slice_width(usage.window))


def to_count(usage: UsageWindow, quota: TenantQuota, demands: Iterable[Demand], now: Instant) -> CountRequest:
    """Return the counts needed to decide on the demands.

    An estimate is counted again if it is too old, or too high to admit all demands, and was not counted a moment ago.
    """
    demand = _total_demand(demands, quota)
    if not demand:
        return CountRequest(total=False, queues=())
    total = quota.backlog is not None and _needs_count(usage.total, quota.backlog, demand.total(), now)
    if quota.queue_backlog is None:
        return CountRequest(total, ())
    limit = quota.queue_backlog
    queues = [queue for queue, jobs in demand.items() if _needs_count(usage.queues.get(queue), limit, jobs, now)]
    return CountRequest(total, tuple(sorted(queues)))


def with_counts(
    usage: UsageWindow,
    quota: TenantQuota,
    demands: Iterable[Demand],
    *,
    total: int | None,
    queues: Mapping[str, int],
    now: Instant,
) -> UsageWindow:
    """Return the usage after these counts of unfinished jobs were made for the demands."""
    demand = _total_demand(demands, quota)
    estimates = dict(usage.queues)
    for queue, jobs in queues.items():
        estimates[queue] = _updated_estimate(estimates.get(queue), jobs, demand[queue], quota.queue_backlog or 0, now)
    estimate = usage.total
    if total is not None:
        estimate = _updated_estimate(estimate, total, demand.total(), quota.backlog or 0, now)
    return msgspec.structs.replace(usage, total=estimate, queues=_newest_estimates(estimates))


def admit(
    usage: UsageWindow, quota: TenantQuota, demands: Sequence[Demand], now: Instant
) -> list[HoldfastError | None]:
    """Decide on the demands in order; return None for each admitted one, or its rejection."""
    usage = _advance_to(usage, quota.window, now)
    before = sum(usage.costs)
    spent, queues = before, Counter[str]()
    rejections: list[HoldfastError | None] = []
    for demand in demands:
        rejection: HoldfastError | None = _exceeds_quota(demand, quota)
        if rejection is None and quota.rate is not None and spent + demand.cost > quota.rate:
            wait = _time_until_freed(
                usage, quota.window, now, new=spent - before, must_leave=spent + demand.cost - quota.rate
            )
            snapshot = _snapshot(usage, quota, spent - before, now)
            rejection = rate_limited(quota.rate, quota.window, spent, wait, snapshot)
        rejection = rejection or _backlog_full(usage, quota, demand, before=queues, now=now)
        if rejection is None:
            spent += demand.cost
            queues.update(demand.queues)
        rejections.append(rejection)
    return rejections


def record(usage: UsageWindow, quota: TenantQuota, cost: int, queues: Mapping[str, int], at: Instant) -> UsageWindow:
    """Add accepted jobs to the usage: their total cost, and the number of new jobs per queue."""
    usage = _advance_to(usage, quota.window, at)
    costs = usage.costs
    if quota.rate is not None and cost:
        costs = (costs[0] + cost, *costs[1:]) if costs else (cost,)
    estimates = {
        queue: _raised(estimate, queues[queue]) if queues.get(queue) else estimate
        for queue, estimate in usage.queues.items()
    }
    total = None if usage.total is None else _raised(usage.total, sum(queues.values()))
    return msgspec.structs.replace(usage, costs=costs, total=total, queues=estimates)


def _raised(estimate: BacklogEstimate, jobs: int) -> BacklogEstimate:
    return msgspec.structs.replace(estimate, upper_bound=estimate.upper_bound + jobs)


def _exceeds_quota(demand: Demand, quota: TenantQuota) -> OverLimit | None:
    """Return the rejection of a demand larger than the whole quota: waiting cannot help."""
    if quota.rate is not None and demand.cost > quota.rate:
        return OverLimit(
            f"this costs {demand.cost:,}, and the tenant may submit {quota.rate:,} in {format_window(quota.window)}: "
            f"{_HOW_TO_FIT}",
            pointer="/cost" if demand.jobs == 1 else "",
        )
    if quota.backlog is not None and demand.jobs > quota.backlog:
        return OverLimit(
            f"these are {demand.jobs:,} jobs, and the tenant may have {quota.backlog:,} unfinished ones: {_HOW_TO_FIT}"
        )
    if quota.queue_backlog is not None:
        for queue, jobs in demand.queues.items():
            if jobs > quota.queue_backlog:
                return OverLimit(
                    f"these are {jobs:,} jobs for the queue {queue!r}, and the tenant may have "
                    f"{quota.queue_backlog:,} unfinished ones in a queue: {_HOW_TO_FIT}"
                )
    return None


_HOW_TO_FIT = "it can never be accepted; submit less at once, or ask an administrator to raise the quota"


def _backlog_full(
    usage: UsageWindow, quota: TenantQuota, demand: Demand, *, before: Counter[str], now: Instant
) -> BacklogFull | None:
    if (
        quota.backlog is not None
        and _upper_bound(usage.total, quota.backlog) + before.total() + demand.jobs > quota.backlog
    ):
        wait = _until_recount(usage.total, now)
        return BacklogFull(
            f"the tenant has reached its quota of about {quota.backlog:,} unfinished jobs: "
            f"try again in {in_seconds(wait):.1f} s",
            retry_after=in_seconds(wait),
        )
    if quota.queue_backlog is None:
        return None
    for queue, jobs in demand.queues.items():
        estimate = usage.queues.get(queue)
        if _upper_bound(estimate, quota.queue_backlog) + before[queue] + jobs > quota.queue_backlog:
            wait = _until_recount(estimate, now)
            return BacklogFull(
                f"the tenant has reached its quota of about {quota.queue_backlog:,} unfinished jobs in the queue "
                f"{queue!r}: try again in {in_seconds(wait):.1f} s",
                retry_after=in_seconds(wait),
            )
    return None


def _total_demand(demands: Iterable[Demand], quota: TenantQuota) -> Counter[str]:
    """Return the jobs per queue, without demands larger than the quota, which need no count."""
    total: Counter[str] = Counter()
    for demand in demands:
        if _exceeds_quota(demand, quota) is None:
            total.update(demand.queues)
    return total


def _upper_bound(estimate: BacklogEstimate | None, limit: int) -> int:
    """Return the estimated backlog; without an estimate assume that it is full."""
    return limit if estimate is None else estimate.upper_bound


def _needs_count(estimate: BacklogEstimate | None, limit: int, jobs: int, now: Instant) -> bool:
    if estimate is None or estimate.at > now:  # the clock stepped back, so the age of the count is unknown
        return True
    if estimate.upper_bound + jobs <= limit:
        return now - estimate.at > max(MIN_COUNT_LIFETIME, estimate.counted * _COUNT_LIFETIME_PER_JOB)
    return now - estimate.at >= _recount_interval(estimate)


def _updated_estimate(
    before: BacklogEstimate | None, jobs: int, demand: int, limit: int, now: Instant
) -> BacklogEstimate:
    refused = jobs + demand > limit
    refusals = (0 if before is None else before.refusals) + 1 if refused else 0
    return BacklogEstimate(jobs, jobs, now, min(refusals, _MAX_DOUBLINGS))


def _recount_interval(estimate: BacklogEstimate) -> int:
    """Return the minimum time between two counts.

    It is a microsecond per counted job, doubled by each consecutive refusal.
    """
    base = max(MIN_RECOUNT_INTERVAL, estimate.counted)
    return min(base << estimate.refusals, max(MAX_RECOUNT_INTERVAL, base))


def _until_recount(estimate: BacklogEstimate | None, now: Instant) -> Duration:
    return Duration(0 if estimate is None else max(0, estimate.at + _recount_interval(estimate) - now))


def _newest_estimates(estimates: dict[str, BacklogEstimate]) -> dict[str, BacklogEstimate]:
    if len(estimates) <= MAX_QUEUES:
        return estimates
    return dict(sorted(estimates.items(), key=lambda item: item[1].at, reverse=True)[:MAX_QUEUES])


def _slice_width(window: int) -> int:
    return -(-window // SLICES)


def _advance_to(usage: UsageWindow, window: int, now: Instant) -> UsageWindow:
    """Return the usage with its latest slice at `now` and without slices that no longer count."""
    usage = after_clock_step(usage, now)
    if usage.window != window:
        usage = _rescale(usage, window, now)
    current = now // _slice_width(window)
    newest, costs = usage.newest, usage.costs
    if not costs:
        newest = current
    elif current > newest:
        costs = ((0,) * min(current - newest, SLICES + 1) + costs)[: SLICES + 1]
        newest = current
    return msgspec.structs.replace(usage, newest=newest, costs=costs if any(costs) else ())


def _rescale(usage: UsageWindow, window: int, now: Instant) -> UsageWindow:
    """Convert the costs to slices of another window, each as late as it may have been accepted."""
    old, new = _slice_width(usage.window), _slice_width(window)
    newest = now // new
    costs = [0] * (SLICES + 1)
    for age, cost in enumerate(usage.costs):
        new_age = newest - min(now, (usage.newest - age + 1) * old - 1) // new
        if new_age <= SLICES:
            costs[new_age] += cost
    return msgspec.structs.replace(usage, window=window, newest=newest, costs=tuple(costs))


def _time_until_freed(usage: UsageWindow, window: int, now: Instant, *, new: int, must_leave: int) -> Duration:
    """Return the time until slices with a total cost of `must_leave` have left the window.

    `new` is cost in the latest slice that `usage` does not include.
    """
    costs = list(usage.costs) or [0]
    costs[0] += new
    for age in reversed(range(len(costs))):
        must_leave -= costs[age]
        if must_leave <= 0:
            break
    return Duration((usage.newest - age + SLICES + 1) * _slice_width(window) - now)


def _snapshot(usage: UsageWindow, quota: TenantQuota, new: int, now: Instant) -> WindowSnapshot:
    first, *rest = usage.costs or (0,)
    return WindowSnapshot(quota.rate or 0, quota.window, usage.newest, (first + new, *rest), now)
