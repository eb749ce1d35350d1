"""Apply concurrency and rate limits to the shares of a claim."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.model.job import Job
from holdfast.model.lane import Lane, Share
from holdfast.model.limit import Limit, LimitName, key_limit, queue_limit, tenant_limit
from holdfast.model.time import Duration, Instant


class LimitedShares(NamedTuple):
    """Shares of a claim after limits were applied."""

    shares: Sequence[Share]
    """Reduced shares; those reduced to zero are left out."""
    full: dict[LimitName, Duration | None]
    """Limits without capacity, and the time until they have some; None until a job ends."""


def lane_limits(lane: Lane) -> tuple[LimitName, LimitName]:
    """Return the names of the limits that apply to a lane if they are set."""
    return queue_limit(lane.queue), tenant_limit(lane.tenant)


def limits_for(job: Job) -> list[LimitName]:
    """Return the names of the limits that apply to a job.

    The limit of its concurrency key applies even if it is not set.
    """
    names = [*lane_limits(Lane(job.queue, job.tenant, job.priority))]
    return names if job.concurrency_key is None else [*names, key_limit(job.tenant, job.concurrency_key)]


def admit(
    shares: Sequence[Share], limits: Iterable[Limit], now: Instant, uncounted: Mapping[LimitName, int]
) -> LimitedShares:
    """Reduce the shares, in order, so that their total stays within every limit.

    Args:
        shares: Shares of the claim.
        limits: Limits that apply to any of them.
        now: Current time.
        uncounted: Number of running jobs per limit that the limit does not count.
    """
    by_name = {limit.of: limit for limit in limits}
    capacity = {name: limit.room(now, uncounted=uncounted.get(name, 0)) for name, limit in by_name.items()}
    left = dict(capacity)
    allowed: list[Share] = []
    full: dict[LimitName, Duration | None] = {}
    for share in shares:
        names = [name for name in lane_limits(share.lane) if name in left]
        max_jobs = min([share.max_jobs, *(left[name] for name in names)])
        if max_jobs > 0:
            allowed.append(share._replace(max_jobs=max_jobs))
        else:
            # A limit that only earlier shares of this claim used up is not full: the next claim may use it again.
            full |= {
                name: by_name[name].opens_in(now, uncounted=uncounted.get(name, 0))
                for name in names
                if capacity[name] <= 0
            }
        for name in names:
            left[name] -= max(0, max_jobs)
    return LimitedShares(allowed, full)


def counting_limits(limits: Iterable[Limit]) -> frozenset[LimitName]:
    """Return the names of the limits that count running jobs."""
    return frozenset(limit.of for limit in limits if limit.max_running is not None)


def fits(jobs: Sequence[Job], limits: Iterable[Limit], counted: Collection[LimitName], now: Instant) -> bool:
    """Return True if optimistically claimed jobs are within all limits.

    `counted` are the limits that the jobs were marked as counted by.
    """
    limits = [limit for limit in limits if limit.is_set]
    started = _started(jobs)
    return counting_limits(limits) == frozenset(counted) and all(
        limit.room(now) >= started[limit.of] for limit in limits
    )


def reserve(limits: Iterable[Limit], jobs: Sequence[Job], now: Instant) -> list[Limit]:
    """Return the limits after these jobs were claimed under them."""
    started = _started(jobs)
    return [limit.after(started[limit.of], now) for limit in limits]


def _started(jobs: Sequence[Job]) -> Counter[LimitName]:
    started: Counter[LimitName] = Counter()
    for (queue, tenant), count in Counter((job.queue, job.tenant) for job in jobs).items():
        for name in lane_limits(Lane(queue, tenant, 0)):
            started[name] += count
    return started
