"""How much a tenant may submit: cost in any window, and unfinished jobs. Pure: the time and the counts are handed in.

What is known of a tenant is its ledger. Of the window it keeps what was accepted in slices of a sixtieth: the slice of
now and the sixty before it all count, so that whatever was accepted within one window is counted, and nothing that is
older than a window and a slice. Of the backlog it keeps an upper bound: the last exact count, and all that came since.
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
WINDOW = seconds(60)
"""Unless somebody says otherwise."""

MIN_RECOUNT_INTERVAL = Duration(10_000)
MAX_RECOUNT_INTERVAL = seconds(1)
MIN_COUNT_LIFETIME = seconds(10)
MAX_QUEUES = 128
"""Of how many queues a ledger keeps a bound. What is not kept is counted anew."""

_COUNT_LIFETIME_PER_JOB = 100
"""Microseconds that a count is relied upon for each job that was counted."""


class TenantQuota(NamedTuple):
    """What a tenant may submit; None is no limit."""

    rate: int | None = None
    window: Duration = WINDOW
    backlog: int | None = None
    queue_backlog: int | None = None

    @property
    def exist(self) -> bool:
        """Whether there is any."""
        return self.rate is not None or self.backlog is not None or self.queue_backlog is not None


class Demand(NamedTuple):
    """What is to be accepted as a whole or not at all."""

    cost: int
    queues: Mapping[str, int]
    """How many jobs for each."""

    @property
    def jobs(self) -> int:
        """How many they are together."""
        return sum(self.queues.values())


class BacklogEstimate(Struct, frozen=True, array_like=True):
    """No more unfinished jobs than `most`, as far as submitting goes."""

    most: int
    counted: int
    at: Instant
    """When they were counted."""
    refusals: int = 0
    """How many counts in a row left too little room."""


class UsageWindow(Struct, frozen=True, array_like=True):
    """What is known of a tenant that has limits."""

    window: int = 0
    """What the slices were cut from."""
    newest: int = 0
    """The number of the latest slice, counted from 1970."""
    costs: tuple[int, ...] = ()
    """What was accepted in it and in those before it, latest first."""
    total: BacklogEstimate | None = None
    queues: dict[str, BacklogEstimate] = {}


class CountRequest(NamedTuple):
    """What must be counted before it can be decided."""

    total: bool
    queues: tuple[str, ...]


_READ = msgspec.msgpack.Decoder(UsageWindow).decode
_WRITE = msgspec.msgpack.Encoder().encode


def read(state: bytes) -> UsageWindow:
    """A ledger as it is kept; nothing at all is an empty one."""
    return _READ(state) if state else UsageWindow()


def write(usage: UsageWindow) -> bytes:
    """A ledger as it is kept."""
    return _WRITE(usage)


def quota_of(quotas: Quotas | None, defaults: TenantQuota) -> TenantQuota:
    """A tenant's limits: its own, and the installation's where it has none."""
    if quotas is None:
        return defaults
    return TenantQuota(
        defaults.rate if quotas.rate is None else quotas.rate,
        defaults.window if quotas.rate_window is None else quotas.rate_window,
        defaults.backlog if quotas.backlog is None else quotas.backlog,
        defaults.queue_backlog if quotas.queue_backlog is None else quotas.queue_backlog,
    )


def demand_of(jobs: Iterable[NewJob]) -> Demand:
    """What these jobs ask for together."""
    cost = 0
    queues: Counter[str] = Counter()
    for job in jobs:
        cost += max(1, job.cost)
        queues[job.queue] += 1
    return Demand(cost, queues)


def after_clock_step(usage: UsageWindow, now: Instant) -> UsageWindow:
    """The ledger after the clock was set back by more than a window: what was accepted last is as good as new.

    The same one if it was not. Set back by less, the latest slice stays open until the clock is there again. Both
    forget nothing too early.
    """
    if not usage.costs or usage.newest - now // _slice_width(usage.window) <= SLICES:
        return usage
    return msgspec.structs.replace(usage, newest=now // _slice_width(usage.window))


def to_count(usage: UsageWindow, quota: TenantQuota, demands: Iterable[Demand], now: Instant) -> CountRequest:
    """What to count: where the bound does not leave room for all, or is old, and it was not counted just now."""
    together = _total_demand(demands, quota)
    if not together:
        return CountRequest(total=False, queues=())
    total = quota.backlog is not None and _needs_count(usage.total, quota.backlog, together.total(), now)
    if quota.queue_backlog is None:
        return CountRequest(total, ())
    most = quota.queue_backlog
    queues = [queue for queue, jobs in together.items() if _needs_count(usage.queues.get(queue), most, jobs, now)]
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
    """The ledger after these counts of unfinished jobs."""
    together = _total_demand(demands, quota)
    bounds = dict(usage.queues)
    for queue, jobs in queues.items():
        bounds[queue] = _updated_estimate(bounds.get(queue), jobs, together[queue], quota.queue_backlog or 0, now)
    bound = usage.total
    if total is not None:
        bound = _updated_estimate(bound, total, together.total(), quota.backlog or 0, now)
    return msgspec.structs.replace(usage, total=bound, queues=_newest_estimates(bounds))


def admit(
    usage: UsageWindow, quota: TenantQuota, demands: Sequence[Demand], now: Instant
) -> list[HoldfastError | None]:
    """For each in its turn: None where there is room for it after those before it, or why there is not."""
    usage = _advance_to(usage, quota.window, now)
    before = sum(usage.costs)
    spent, queues = before, Counter[str]()
    answers: list[HoldfastError | None] = []
    for each in demands:
        refusal: HoldfastError | None = _exceeds_quota(each, quota)
        if refusal is None and quota.rate is not None and spent + each.cost > quota.rate:
            wait = _time_until_freed(
                usage, quota.window, now, new=spent - before, must_leave=spent + each.cost - quota.rate
            )
            refusal = rate_limited(quota.rate, quota.window, spent, wait, _snapshot(usage, quota, spent - before, now))
        refusal = refusal or _backlog_full(usage, quota, each, before=queues, now=now)
        if refusal is None:
            spent += each.cost
            queues.update(each.queues)
        answers.append(refusal)
    return answers


def record(usage: UsageWindow, quota: TenantQuota, cost: int, queues: Mapping[str, int], at: Instant) -> UsageWindow:
    """The ledger after this was accepted: its cost, and how many jobs were new in each queue."""
    usage = _advance_to(usage, quota.window, at)
    costs = usage.costs
    if quota.rate is not None and cost:
        costs = (costs[0] + cost, *costs[1:]) if costs else (cost,)
    bounds = {
        queue: msgspec.structs.replace(bound, most=bound.most + queues[queue]) if queues.get(queue) else bound
        for queue, bound in usage.queues.items()
    }
    total = usage.total
    if total is not None:
        total = msgspec.structs.replace(total, most=total.most + sum(queues.values()))
    return msgspec.structs.replace(usage, costs=costs, total=total, queues=bounds)


def _exceeds_quota(demands: Demand, quota: TenantQuota) -> OverLimit | None:
    """Why it can never be accepted, however long one waits."""
    if quota.rate is not None and demands.cost > quota.rate:
        return OverLimit(
            f"this costs {demands.cost:,}, and the tenant may submit {quota.rate:,} in {format_window(quota.window)}: "
            "it can never pass; send less at once, or have the limit raised",
            pointer="/cost" if demands.jobs == 1 else "",
        )
    if quota.backlog is not None and demands.jobs > quota.backlog:
        return OverLimit(
            f"these are {demands.jobs:,} jobs, and the tenant may have {quota.backlog:,} unfinished ones: "
            "it can never pass; send less at once, or have the limit raised"
        )
    if quota.queue_backlog is not None:
        for queue, jobs in demands.queues.items():
            if jobs > quota.queue_backlog:
                return OverLimit(
                    f"these are {jobs:,} jobs for the queue {queue!r}, and the tenant may have "
                    f"{quota.queue_backlog:,} unfinished ones in a queue: it can never pass; send less at once, or "
                    "have the limit raised"
                )
    return None


def _backlog_full(
    usage: UsageWindow, quota: TenantQuota, demands: Demand, *, before: Counter[str], now: Instant
) -> BacklogFull | None:
    if (
        quota.backlog is not None
        and _upper_bound(usage.total, quota.backlog) + before.total() + demands.jobs > quota.backlog
    ):
        wait = _until_recount(usage.total, now)
        return BacklogFull(
            f"the tenant has about as many unfinished jobs as it may have ({quota.backlog:,}): "
            f"try again in {in_seconds(wait):.1f} s",
            retry_after=in_seconds(wait),
        )
    if quota.queue_backlog is None:
        return None
    for queue, more in demands.queues.items():
        bound = usage.queues.get(queue)
        if _upper_bound(bound, quota.queue_backlog) + before[queue] + more > quota.queue_backlog:
            wait = _until_recount(bound, now)
            return BacklogFull(
                f"the tenant has about as many unfinished jobs in the queue {queue!r} as it may have "
                f"({quota.queue_backlog:,}): try again in {in_seconds(wait):.1f} s",
                retry_after=in_seconds(wait),
            )
    return None


def _total_demand(demands: Iterable[Demand], quota: TenantQuota) -> Counter[str]:
    """How many jobs may come into each queue, but for what can never pass: nothing is to be counted for that."""
    together: Counter[str] = Counter()
    for each in demands:
        if _exceeds_quota(each, quota) is None:
            together.update(each.queues)
    return together


def _upper_bound(bound: BacklogEstimate | None, limit: int) -> int:
    """What is not known may be anything."""
    return limit if bound is None else bound.most


def _needs_count(bound: BacklogEstimate | None, limit: int, jobs: int, now: Instant) -> bool:
    if bound is None or bound.at > now:  # the clock was set back: nothing is known of how old it is
        return True
    if bound.most + jobs <= limit:
        return now - bound.at > max(MIN_COUNT_LIFETIME, bound.counted * _COUNT_LIFETIME_PER_JOB)
    return now - bound.at >= _recount_interval(bound)


def _updated_estimate(
    before: BacklogEstimate | None, jobs: int, more: int, limit: int, now: Instant
) -> BacklogEstimate:
    crowded = jobs + more > limit
    refusals = (0 if before is None else before.refusals) + 1 if crowded else 0
    return BacklogEstimate(jobs, jobs, now, min(refusals, 16))


def _recount_interval(bound: BacklogEstimate) -> int:
    """How long it is not counted again: as many microseconds as there were jobs, and longer if that was in vain."""
    once = max(MIN_RECOUNT_INTERVAL, bound.counted)
    return min(once << bound.refusals, max(MAX_RECOUNT_INTERVAL, once))


def _until_recount(bound: BacklogEstimate | None, now: Instant) -> Duration:
    return Duration(0 if bound is None else max(0, bound.at + _recount_interval(bound) - now))


def _newest_estimates(bounds: dict[str, BacklogEstimate]) -> dict[str, BacklogEstimate]:
    if len(bounds) <= MAX_QUEUES:
        return bounds
    return dict(sorted(bounds.items(), key=lambda item: item[1].at, reverse=True)[:MAX_QUEUES])


def _slice_width(window: int) -> int:
    return -(-window // SLICES)


def _advance_to(usage: UsageWindow, window: int, now: Instant) -> UsageWindow:
    """The ledger with its latest slice at `now`, and without those that count no more."""
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
    """The same costs in slices of another window, each as late as it may have been accepted."""
    old, new = _slice_width(usage.window), _slice_width(window)
    newest = now // new
    costs = [0] * (SLICES + 1)
    for age, cost in enumerate(usage.costs):
        place = newest - min(now, (usage.newest - age + 1) * old - 1) // new
        if place <= SLICES:
            costs[place] += cost
    return msgspec.structs.replace(usage, window=window, newest=newest, costs=tuple(costs))


def _time_until_freed(usage: UsageWindow, window: int, now: Instant, *, new: int, must_leave: int) -> Duration:
    """How long until slices with so much cost have left, `new` being in the latest."""
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
