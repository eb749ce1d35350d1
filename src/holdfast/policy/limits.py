"""What limits leave room for: how far a claim's shares are lowered, and what it then takes."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.model.job import Job
from holdfast.model.lane import Lane, Share
from holdfast.model.limit import Limit, LimitName, key_limit, queue_limit, tenant_limit
from holdfast.model.time import Duration, Instant


class LimitedShares(NamedTuple):
    """What of a claim's shares limits allow."""

    shares: Sequence[Share]
    """Lowered; those with no room at all are not among them."""
    shut: dict[LimitName, Duration | None]
    """What left no room for some, and how long until it does again: None is when a job ends."""


def names_of(lane: Lane) -> tuple[LimitName, LimitName]:
    """The limits a lane is under, if they are set."""
    return queue_limit(lane.queue), tenant_limit(lane.tenant)


def limits_for(job: Job) -> list[LimitName]:
    """All limits a job is under, if they are set; one with a concurrency key always is under that of the key."""
    names = [*names_of(Lane(job.queue, job.tenant, job.priority))]
    return names if job.concurrency_key is None else [*names, key_limit(job.tenant, job.concurrency_key)]


def admit(
    shares: Sequence[Share], limits: Iterable[Limit], now: Instant, uncounted: Mapping[LimitName, int]
) -> LimitedShares:
    """Lower shares to what all limits on them leave, in the order given: together they never offer more than fits.

    `uncounted`: jobs that run under a limit and are not counted in it.
    """
    known = {limit.of: limit for limit in limits}
    at_first = {name: limit.room(now, uncounted=uncounted.get(name, 0)) for name, limit in known.items()}
    left = dict(at_first)
    allowed: list[Share] = []
    shut: dict[LimitName, Duration | None] = {}
    for share in shares:
        names = [name for name in names_of(share.lane) if name in left]
        quota = min([share.quota, *(left[name] for name in names)])
        if quota > 0:
            allowed.append(share._replace(quota=quota))
        else:  # that others of this claim use up what there is, is no reason to wait
            full = [name for name in names if at_first[name] <= 0]
            shut |= {name: known[name].opens_in(now, uncounted=uncounted.get(name, 0)) for name in full}
        for name in names:
            left[name] -= max(0, quota)
    return LimitedShares(allowed, shut)


def counting(limits: Iterable[Limit]) -> frozenset[LimitName]:
    """Those of them that count the jobs running."""
    return frozenset(limit.of for limit in limits if limit.max_running is not None)


def fit(jobs: Sequence[Job], limits: Iterable[Limit], counted: Collection[LimitName], now: Instant) -> bool:
    """Whether limits leave room for jobs that were claimed first, and marked as counted in these."""
    limits = [limit for limit in limits if limit.limits]
    started = _started(jobs)
    return counting(limits) == frozenset(counted) and all(limit.room(now) >= started[limit.of] for limit in limits)


def reserve(limits: Iterable[Limit], jobs: Sequence[Job], now: Instant) -> list[Limit]:
    """The limits after these jobs were claimed under them."""
    started = _started(jobs)
    return [limit.after(started[limit.of], now) for limit in limits]


def _started(jobs: Sequence[Job]) -> Counter[LimitName]:
    started: Counter[LimitName] = Counter()
    for lane, many in Counter((job.queue, job.tenant) for job in jobs).items():
        for name in names_of(Lane(*lane, 0)):
            started[name] += many
    return started
