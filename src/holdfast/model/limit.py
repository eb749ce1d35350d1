"""Concurrency and rate limits of queues, tenants and concurrency keys, and pauses."""

import enum
import math
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from holdfast.model.job import Job
from holdfast.model.queue import Queue
from holdfast.model.time import Duration, Instant

TOKEN = 1_000_000
"""Tokens that one start takes from a bucket."""

DEFAULT_CONCURRENCY_PER_KEY = 1
"""Default number of concurrently running jobs per concurrency key."""


QUEUE_SLOT = 1
TENANT_SLOT = 2
"""Bits of `Job.slots`: the limits that count a running job."""

_UNLIMITED = 1 << 62


class LimitKind(enum.IntEnum):
    """Kind of a limit. The value is stored, and is the order in which limits are locked."""

    QUEUE = 0
    TENANT = 1
    KEY = 2


class LimitName(NamedTuple):
    """Name of a limit. `tenant` is set for concurrency keys only."""

    kind: LimitKind
    tenant: str
    name: str


class Rate(NamedTuple):
    """Rate limit: `limit` starts per `per`, with bursts of up to `burst`."""

    limit: int
    per: Duration
    burst: int


class Limit(NamedTuple):
    """Limit and its current usage."""

    of: LimitName
    max_running: int | None = None
    rate: Rate | None = None
    used: int = 0
    """Number of running jobs it counts; for a concurrency key, jobs that run or may be claimed."""
    unsettled: bool = False
    """True while `used` may miss jobs that started before all nodes knew the limit."""
    tokens: int = 0
    """Tokens in the bucket at `refilled_at`, in millionths of a start."""
    refilled_at: Instant = Instant(0)
    changed_at: Instant = Instant(0)
    changed_by: str = ""

    @property
    def is_set(self) -> bool:
        """True if the concurrency or the rate is limited."""
        return self.max_running is not None or self.rate is not None

    def refilled(self, now: Instant) -> "Limit":
        """Return the limit with its bucket refilled; a clock that stepped back adds nothing."""
        if self.rate is None:
            return self
        passed = max(0, now - self.refilled_at)
        tokens = min(self.rate.burst * TOKEN, self.tokens + passed * self.rate.limit * TOKEN // self.rate.per)
        return self._replace(tokens=tokens, refilled_at=max(now, self.refilled_at))

    def room(self, now: Instant, *, uncounted: int = 0) -> int:
        """Return how many jobs may start now; `uncounted` running jobs are missing from `used`."""
        maximum = self.max_running
        if maximum is None and self.of.kind is LimitKind.KEY:
            maximum = DEFAULT_CONCURRENCY_PER_KEY
        free = _UNLIMITED if maximum is None else max(0, maximum - self.used - uncounted)
        return free if self.rate is None else min(free, max(0, self.refilled(now).tokens) // TOKEN)

    def opens_in(self, now: Instant, *, uncounted: int = 0) -> Duration | None:
        """Return the time until the next token, or None if capacity returns only when a job ends."""
        if self.rate is None or self._replace(rate=None).room(now, uncounted=uncounted) <= 0:
            return None
        missing = TOKEN - self.refilled(now).tokens
        return Duration(max(0, math.ceil(missing * self.rate.per / (self.rate.limit * TOKEN))))

    def after(self, starts: int, now: Instant) -> "Limit":
        """Return the limit after `starts` more starts."""
        limit = self.refilled(now)
        used = limit.used + (starts if limit.max_running is not None else 0)
        return limit._replace(used=used, tokens=limit.tokens - (starts * TOKEN if limit.rate is not None else 0))


class PauseKind(enum.IntEnum):
    """Kind of a paused object other than a queue. The value is stored."""

    TYPE = 0
    TENANT = 1


class Pause(NamedTuple):
    """Pause of a job type or tenant, until `until` if set."""

    kind: PauseKind
    name: str
    reason: str = ""
    until: Instant | None = None
    changed_at: Instant = Instant(0)
    changed_by: str = ""

    def holds_at(self, now: Instant) -> bool:
        """Return True while the pause is in effect."""
        return self.until is None or now < self.until


class DispatchSettings(NamedTuple):
    """Settings that a claim follows: pauses, tenant weights and limits."""

    version: int
    """Number that is incremented whenever a setting changes."""
    queues: tuple[Queue, ...] = ()
    """Queues with settings."""
    pauses: tuple[Pause, ...] = ()
    limited: frozenset[LimitName] = frozenset()
    """Names of the queue and tenant limits that are set."""
    weights: dict[str, int] = {}  # noqa: RUF012 - a value, never changed
    """Weights of tenants; the default is 1."""


def queue_limit(queue: str) -> LimitName:
    """Return the name of a queue's limit."""
    return LimitName(LimitKind.QUEUE, "", queue)


def tenant_limit(tenant: str) -> LimitName:
    """Return the name of a tenant's limit."""
    return LimitName(LimitKind.TENANT, "", tenant)


def key_limit(tenant: str, key: str) -> LimitName:
    """Return the name of the limit of a concurrency key."""
    return LimitName(LimitKind.KEY, tenant, key)


def slots(queue: str, tenant: str, counting: Collection[LimitName]) -> int:
    """Return the `Job.slots` bits for a job claimed under these limits."""
    of_queue = QUEUE_SLOT if queue_limit(queue) in counting else 0
    return of_queue | (TENANT_SLOT if tenant_limit(tenant) in counting else 0)


def slots_to_release(jobs: Iterable[Job]) -> list[tuple[LimitName, int]]:
    """Return the limits that count these running jobs with the number of jobs, in lock order."""
    held: Counter[LimitName] = Counter()
    counts = Counter((job.queue, job.tenant, job.slots) for job in jobs if job.slots)
    for (queue, tenant, slots), count in counts.items():
        if slots & QUEUE_SLOT:
            held[queue_limit(queue)] += count
        if slots & TENANT_SLOT:
            held[tenant_limit(tenant)] += count
    return sorted(held.items())
