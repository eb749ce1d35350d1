"""Limits: how many jobs run at once, and how many start in a span, of a queue, a tenant or a key. And what rests."""

import enum
import math
from collections import Counter
from collections.abc import Collection, Iterable
from typing import NamedTuple

from holdfast.model.job import Job
from holdfast.model.queue import Queue
from holdfast.model.time import Duration, Instant

TOKEN = 1_000_000
"""What one start takes from a bucket."""

DEFAULT_CONCURRENCY_PER_KEY = 1
"""How many jobs with the same concurrency_key run at once where nobody set more."""


QUEUE_SLOT = 1
TENANT_SLOT = 2
"""Marks on a running job: which limits count it."""

_UNLIMITED = 1 << 62


class LimitKind(enum.IntEnum):
    """What a limit is of. The number is the stored one, and the order in which limits are locked."""

    QUEUE = 0
    TENANT = 1
    KEY = 2


class LimitName(NamedTuple):
    """Which limit. `tenant` is that of a key, and empty for the others."""

    kind: LimitKind
    tenant: str
    name: str


class Rate(NamedTuple):
    """So many starts in each span, and up to `burst` of them at once."""

    limit: int
    per: Duration
    burst: int


class Limit(NamedTuple):
    """A limit and how it stands."""

    of: LimitName
    max_running: int | None = None
    rate: Rate | None = None
    used: int = 0
    """How many running jobs are counted in it; of a key, how many have a turn: they run, or are about to."""
    unsettled: bool = False
    """Jobs may run that are not counted: they began before the limit was known everywhere."""
    tokens: int = 0
    """In the bucket at `refilled_at`, in millionths of a start."""
    refilled_at: Instant = Instant(0)
    changed_at: Instant = Instant(0)
    changed_by: str = ""

    @property
    def limits(self) -> bool:
        """Whether anything is limited."""
        return self.max_running is not None or self.rate is not None

    def refilled(self, now: Instant) -> "Limit":
        """The same with what came into its bucket meanwhile. A clock that went back brings nothing."""
        if self.rate is None:
            return self
        passed = max(0, now - self.refilled_at)
        tokens = min(self.rate.burst * TOKEN, self.tokens + passed * self.rate.limit * TOKEN // self.rate.per)
        return self._replace(tokens=tokens, refilled_at=max(now, self.refilled_at))

    def room(self, now: Instant, *, uncounted: int = 0) -> int:
        """How many jobs may start now, as far as it goes. `uncounted`: how many run that it does not count."""
        most = self.max_running
        if most is None and self.of.kind is LimitKind.KEY:
            most = DEFAULT_CONCURRENCY_PER_KEY
        free = _UNLIMITED if most is None else max(0, most - self.used - uncounted)
        return free if self.rate is None else min(free, max(0, self.refilled(now).tokens) // TOKEN)

    def opens_in(self, now: Instant, *, uncounted: int = 0) -> Duration | None:
        """How long until it has room, if it has none: when its next token comes; None: when a job of it ends."""
        if self.rate is None or self._replace(rate=None).room(now, uncounted=uncounted) <= 0:
            return None
        missing = TOKEN - self.refilled(now).tokens
        return Duration(max(0, math.ceil(missing * self.rate.per / (self.rate.limit * TOKEN))))

    def after(self, starts: int, now: Instant) -> "Limit":
        """As it stands when so many more were started."""
        taken = self.refilled(now)
        used = taken.used + (starts if taken.max_running is not None else 0)
        return taken._replace(used=used, tokens=taken.tokens - (starts * TOKEN if taken.rate is not None else 0))


class PauseKind(enum.IntEnum):
    """What rests, besides queues. The number is the stored one."""

    TYPE = 0
    TENANT = 1


class Pause(NamedTuple):
    """Nothing of this type, or of this tenant, is claimed, until `until` if that is set."""

    kind: PauseKind
    name: str
    reason: str = ""
    until: Instant | None = None
    changed_at: Instant = Instant(0)
    changed_by: str = ""

    def holds_at(self, now: Instant) -> bool:
        """Whether it is not over."""
        return self.until is None or now < self.until


class DispatchSettings(NamedTuple):
    """What a claim goes by: what rests, whose turns weigh how much, and what is limited."""

    version: int
    """Changes with everything below."""
    queues: tuple[Queue, ...] = ()
    """That something was set for."""
    pauses: tuple[Pause, ...] = ()
    limited: frozenset[LimitName] = frozenset()
    """Queues and tenants that have limits."""
    weights: dict[str, int] = {}  # noqa: RUF012 - a value, never changed
    """Of tenants; others have 1."""


def queue_limit(queue: str) -> LimitName:
    """The name of a queue's limit."""
    return LimitName(LimitKind.QUEUE, "", queue)


def tenant_limit(tenant: str) -> LimitName:
    """The name of a tenant's limit."""
    return LimitName(LimitKind.TENANT, "", tenant)


def key_limit(tenant: str, key: str) -> LimitName:
    """The name of the limit of a concurrency key."""
    return LimitName(LimitKind.KEY, tenant, key)


def slots(queue: str, tenant: str, counting: Collection[LimitName]) -> int:
    """The marks of a job that is claimed under these limits."""
    of_queue = QUEUE_SLOT if queue_limit(queue) in counting else 0
    return of_queue | (TENANT_SLOT if tenant_limit(tenant) in counting else 0)


def slots_to_release(jobs: Iterable[Job]) -> list[tuple[LimitName, int]]:
    """What these running jobs are counted in, each limit once, in the order of locking."""
    held: Counter[LimitName] = Counter()
    for (queue, tenant, slots), many in Counter(
        (job.queue, job.tenant, job.slots) for job in jobs if job.slots
    ).items():
        if slots & QUEUE_SLOT:
            held[queue_limit(queue)] += many
        if slots & TENANT_SLOT:
            held[tenant_limit(tenant)] += many
    return sorted(held.items())
