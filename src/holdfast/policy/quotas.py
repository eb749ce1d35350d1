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
from holdfast.policy.rate_limit import Spent, shown, too_many

SLICES = 60
WINDOW = seconds(60)
"""Unless somebody says otherwise."""

LEAST_PAUSE = Duration(10_000)
LONGEST_PAUSE = seconds(1)
LEAST_TRUST = seconds(10)
MOST_QUEUES = 128
"""Of how many queues a ledger keeps a bound. What is not kept is counted anew."""

_TRUST_FOR_EACH = 100
"""Microseconds that a count is relied upon for each job that was counted."""


class Limits(NamedTuple):
    """What a tenant may submit; None is no limit."""

    rate: int | None = None
    window: Duration = WINDOW
    backlog: int | None = None
    queue_backlog: int | None = None

    @property
    def exist(self) -> bool:
        """Whether there is any."""
        return self.rate is not None or self.backlog is not None or self.queue_backlog is not None


class Asked(NamedTuple):
    """What is to be accepted as a whole or not at all."""

    cost: int
    queues: Mapping[str, int]
    """How many jobs for each."""

    @property
    def jobs(self) -> int:
        """How many they are together."""
        return sum(self.queues.values())


class Bound(Struct, frozen=True, array_like=True):
    """No more unfinished jobs than `most`, as far as submitting goes."""

    most: int
    counted: int
    at: Instant
    """When they were counted."""
    refusals: int = 0
    """How many counts in a row left too little room."""


class Ledger(Struct, frozen=True, array_like=True):
    """What is known of a tenant that has limits."""

    window: int = 0
    """What the slices were cut from."""
    newest: int = 0
    """The number of the latest slice, counted from 1970."""
    costs: tuple[int, ...] = ()
    """What was accepted in it and in those before it, latest first."""
    total: Bound | None = None
    queues: dict[str, Bound] = {}


class Wanted(NamedTuple):
    """What must be counted before it can be decided."""

    total: bool
    queues: tuple[str, ...]


_READ = msgspec.msgpack.Decoder(Ledger).decode
_WRITE = msgspec.msgpack.Encoder().encode


def read(state: bytes) -> Ledger:
    """A ledger as it is kept; nothing at all is an empty one."""
    return _READ(state) if state else Ledger()


def write(ledger: Ledger) -> bytes:
    """A ledger as it is kept."""
    return _WRITE(ledger)


def limits_of(quotas: Quotas | None, defaults: Limits) -> Limits:
    """A tenant's limits: its own, and the installation's where it has none."""
    if quotas is None:
        return defaults
    return Limits(
        defaults.rate if quotas.rate is None else quotas.rate,
        defaults.window if quotas.rate_window is None else quotas.rate_window,
        defaults.backlog if quotas.backlog is None else quotas.backlog,
        defaults.queue_backlog if quotas.queue_backlog is None else quotas.queue_backlog,
    )


def asked_for(jobs: Iterable[NewJob]) -> Asked:
    """What these jobs ask for together."""
    cost = 0
    queues: Counter[str] = Counter()
    for job in jobs:
        cost += max(1, job.cost)
        queues[job.queue] += 1
    return Asked(cost, queues)


def righted(ledger: Ledger, now: Instant) -> Ledger:
    """The ledger after the clock was set back by more than a window: what was accepted last is as good as new.

    The same one if it was not. Set back by less, the latest slice stays open until the clock is there again. Both
    forget nothing too early.
    """
    if not ledger.costs or ledger.newest - now // _width(ledger.window) <= SLICES:
        return ledger
    return msgspec.structs.replace(ledger, newest=now // _width(ledger.window))


def to_count(ledger: Ledger, limits: Limits, asked: Iterable[Asked], now: Instant) -> Wanted:
    """What to count: where the bound does not leave room for all, or is old, and it was not counted just now."""
    together = _together(asked, limits)
    if not together:
        return Wanted(total=False, queues=())
    total = limits.backlog is not None and _unsure(ledger.total, limits.backlog, together.total(), now)
    if limits.queue_backlog is None:
        return Wanted(total, ())
    most = limits.queue_backlog
    queues = [queue for queue, jobs in together.items() if _unsure(ledger.queues.get(queue), most, jobs, now)]
    return Wanted(total, tuple(sorted(queues)))


def counted(
    ledger: Ledger,
    limits: Limits,
    asked: Iterable[Asked],
    *,
    total: int | None,
    queues: Mapping[str, int],
    now: Instant,
) -> Ledger:
    """The ledger after these counts of unfinished jobs."""
    together = _together(asked, limits)
    bounds = dict(ledger.queues)
    for queue, jobs in queues.items():
        bounds[queue] = _bound(bounds.get(queue), jobs, together[queue], limits.queue_backlog or 0, now)
    bound = ledger.total
    if total is not None:
        bound = _bound(bound, total, together.total(), limits.backlog or 0, now)
    return msgspec.structs.replace(ledger, total=bound, queues=_latest(bounds))


def admit(ledger: Ledger, limits: Limits, asked: Sequence[Asked], now: Instant) -> list[HoldfastError | None]:
    """For each in its turn: None where there is room for it after those before it, or why there is not."""
    ledger = _turned(ledger, limits.window, now)
    before = sum(ledger.costs)
    spent, queues = before, Counter[str]()
    answers: list[HoldfastError | None] = []
    for each in asked:
        refusal: HoldfastError | None = _never(each, limits)
        if refusal is None and limits.rate is not None and spent + each.cost > limits.rate:
            wait = _wait(ledger, limits.window, now, new=spent - before, must_leave=spent + each.cost - limits.rate)
            refusal = too_many(limits.rate, limits.window, spent, wait, _spent(ledger, limits, spent - before, now))
        refusal = refusal or _crowded(ledger, limits, each, before=queues, now=now)
        if refusal is None:
            spent += each.cost
            queues.update(each.queues)
        answers.append(refusal)
    return answers


def book(ledger: Ledger, limits: Limits, cost: int, queues: Mapping[str, int], at: Instant) -> Ledger:
    """The ledger after this was accepted: its cost, and how many jobs were new in each queue."""
    ledger = _turned(ledger, limits.window, at)
    costs = ledger.costs
    if limits.rate is not None and cost:
        costs = (costs[0] + cost, *costs[1:]) if costs else (cost,)
    bounds = {
        queue: msgspec.structs.replace(bound, most=bound.most + queues[queue]) if queues.get(queue) else bound
        for queue, bound in ledger.queues.items()
    }
    total = ledger.total
    if total is not None:
        total = msgspec.structs.replace(total, most=total.most + sum(queues.values()))
    return msgspec.structs.replace(ledger, costs=costs, total=total, queues=bounds)


def _never(asked: Asked, limits: Limits) -> OverLimit | None:
    """Why it can never be accepted, however long one waits."""
    if limits.rate is not None and asked.cost > limits.rate:
        return OverLimit(
            f"this costs {asked.cost:,}, and the tenant may submit {limits.rate:,} in {shown(limits.window)}: "
            "it can never pass; send less at once, or have the limit raised",
            pointer="/cost" if asked.jobs == 1 else "",
        )
    if limits.backlog is not None and asked.jobs > limits.backlog:
        return OverLimit(
            f"these are {asked.jobs:,} jobs, and the tenant may have {limits.backlog:,} unfinished ones: "
            "it can never pass; send less at once, or have the limit raised"
        )
    if limits.queue_backlog is not None:
        for queue, jobs in asked.queues.items():
            if jobs > limits.queue_backlog:
                return OverLimit(
                    f"these are {jobs:,} jobs for the queue {queue!r}, and the tenant may have "
                    f"{limits.queue_backlog:,} unfinished ones in a queue: it can never pass; send less at once, or "
                    "have the limit raised"
                )
    return None


def _crowded(ledger: Ledger, limits: Limits, asked: Asked, *, before: Counter[str], now: Instant) -> BacklogFull | None:
    if (
        limits.backlog is not None
        and _most(ledger.total, limits.backlog) + before.total() + asked.jobs > limits.backlog
    ):
        wait = _pause_left(ledger.total, now)
        return BacklogFull(
            f"the tenant has about as many unfinished jobs as it may have ({limits.backlog:,}): "
            f"try again in {in_seconds(wait):.1f} s",
            retry_after=in_seconds(wait),
        )
    if limits.queue_backlog is None:
        return None
    for queue, more in asked.queues.items():
        bound = ledger.queues.get(queue)
        if _most(bound, limits.queue_backlog) + before[queue] + more > limits.queue_backlog:
            wait = _pause_left(bound, now)
            return BacklogFull(
                f"the tenant has about as many unfinished jobs in the queue {queue!r} as it may have "
                f"({limits.queue_backlog:,}): try again in {in_seconds(wait):.1f} s",
                retry_after=in_seconds(wait),
            )
    return None


def _together(asked: Iterable[Asked], limits: Limits) -> Counter[str]:
    """How many jobs may come into each queue, but for what can never pass: nothing is to be counted for that."""
    together: Counter[str] = Counter()
    for each in asked:
        if _never(each, limits) is None:
            together.update(each.queues)
    return together


def _most(bound: Bound | None, limit: int) -> int:
    """What is not known may be anything."""
    return limit if bound is None else bound.most


def _unsure(bound: Bound | None, limit: int, jobs: int, now: Instant) -> bool:
    if bound is None or bound.at > now:  # the clock was set back: nothing is known of how old it is
        return True
    if bound.most + jobs <= limit:
        return now - bound.at > max(LEAST_TRUST, bound.counted * _TRUST_FOR_EACH)
    return now - bound.at >= _pause(bound)


def _bound(before: Bound | None, jobs: int, more: int, limit: int, now: Instant) -> Bound:
    crowded = jobs + more > limit
    refusals = (0 if before is None else before.refusals) + 1 if crowded else 0
    return Bound(jobs, jobs, now, min(refusals, 16))


def _pause(bound: Bound) -> int:
    """How long it is not counted again: as many microseconds as there were jobs, and longer if that was in vain."""
    once = max(LEAST_PAUSE, bound.counted)
    return min(once << bound.refusals, max(LONGEST_PAUSE, once))


def _pause_left(bound: Bound | None, now: Instant) -> Duration:
    return Duration(0 if bound is None else max(0, bound.at + _pause(bound) - now))


def _latest(bounds: dict[str, Bound]) -> dict[str, Bound]:
    if len(bounds) <= MOST_QUEUES:
        return bounds
    return dict(sorted(bounds.items(), key=lambda item: item[1].at, reverse=True)[:MOST_QUEUES])


def _width(window: int) -> int:
    return -(-window // SLICES)


def _turned(ledger: Ledger, window: int, now: Instant) -> Ledger:
    """The ledger with its latest slice at `now`, and without those that count no more."""
    ledger = righted(ledger, now)
    if ledger.window != window:
        ledger = _recut(ledger, window, now)
    current = now // _width(window)
    newest, costs = ledger.newest, ledger.costs
    if not costs:
        newest = current
    elif current > newest:
        costs = ((0,) * min(current - newest, SLICES + 1) + costs)[: SLICES + 1]
        newest = current
    return msgspec.structs.replace(ledger, newest=newest, costs=costs if any(costs) else ())


def _recut(ledger: Ledger, window: int, now: Instant) -> Ledger:
    """The same costs in slices of another window, each as late as it may have been accepted."""
    old, new = _width(ledger.window), _width(window)
    newest = now // new
    costs = [0] * (SLICES + 1)
    for age, cost in enumerate(ledger.costs):
        place = newest - min(now, (ledger.newest - age + 1) * old - 1) // new
        if place <= SLICES:
            costs[place] += cost
    return msgspec.structs.replace(ledger, window=window, newest=newest, costs=tuple(costs))


def _wait(ledger: Ledger, window: int, now: Instant, *, new: int, must_leave: int) -> Duration:
    """How long until slices with so much cost have left, `new` being in the latest."""
    costs = list(ledger.costs) or [0]
    costs[0] += new
    for age in reversed(range(len(costs))):
        must_leave -= costs[age]
        if must_leave <= 0:
            break
    return Duration((ledger.newest - age + SLICES + 1) * _width(window) - now)


def _spent(ledger: Ledger, limits: Limits, new: int, now: Instant) -> Spent:
    first, *rest = ledger.costs or (0,)
    return Spent(limits.rate or 0, limits.window, ledger.newest, (first + new, *rest), now)
