"""What the engine asks of a database about what changed: the feed, the roll-ups made of it, queues and who holds jobs.

A part of `holdfast.store.port.store`.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from holdfast.model.change_log import Entry
from holdfast.model.ids import WorkerId
from holdfast.model.queue import Queue
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant


class Kept(NamedTuple):
    """What there is of the feed: numbers up to `pruned` may be gone, `last` is the highest."""

    pruned: int
    last: int


class Folds(NamedTuple):
    """How far the feed was folded: rows up to `seq` but those in the holes, and minutes before `hours` into hours."""

    seq: int
    holes: bytes
    pruned: int
    hours: Instant
    lost: int = 0
    """Workers whose lease ran out, ever, as those rows tell."""


class Rollup(NamedTuple):
    """Stored figures. Histograms are JSON."""

    tenant: str
    at: Instant
    queue: str
    type: str
    submitted: int
    started: int
    succeeded: int
    failed: int
    dead: int
    cancelled: int
    wait: bytes
    run: bytes
    cost: int
    waited: Duration
    reaped: int


class Served(NamedTuple):
    """What a tenant's attempts that ended in a minute, hour or day cost, and the longest that one had waited."""

    tenant: str
    at: Instant
    cost: int
    waited: Duration


class Standing(NamedTuple):
    """How many jobs stand where, and since when the one has been due that has waited longest."""

    tenant: str
    queue: str
    type: str
    status: Status
    jobs: int
    since: Instant | None


class Feed(Protocol):
    """What changed, a row for each statement that changes jobs, committed with the change.

    Numbers are drawn before the commit: a lower one can appear after a higher one.
    """

    async def feed_after(self, seq: int, limit: int) -> list[Entry]:
        """Rows with higher numbers, in order."""

    async def feed_at(self, numbers: Collection[int]) -> list[Entry]:
        """Those of these rows that are there, in order."""

    async def feed_numbers(self, seq: int, limit: int) -> list[int]:
        """The numbers of rows above this one, in order."""

    async def feed_kept(self) -> Kept:
        """What there is."""

    async def folds(self) -> Folds:
        """How far the feed was folded into roll-ups."""

    async def lock_folds(self) -> Folds | None:
        """The same, locked so that nobody else folds until the commit; None when somebody does."""

    async def save_folds(self, folds: Folds) -> None:
        """Note how far it is now, under the lock."""

    async def prune_feed(self, upto: int, keep: Duration, limit: int) -> int | None:
        """Remove rows older than `keep`, oldest first, none above the number `upto`; the highest that was there."""

    async def rollups(self, span: Duration, tenant: str, since: Instant, before: Instant) -> list[Rollup]:
        """Figures of one tenant ('': of all together) from an instant on and before another, oldest first."""

    async def served(self, span: Duration, since: Instant, limit: int) -> list[Served]:
        """What each tenant was given from an instant on, in no order; at most `limit` of these."""

    async def rollups_at(self, span: Duration, at: Instant) -> list[Rollup]:
        """Figures of all tenants, and of all together, in one minute or hour."""

    async def save_rollups(self, span: Duration, rollups: Sequence[Rollup]) -> None:
        """Put these in the place of what was there, if anything was."""

    async def prune_rollups(self, span: Duration, before: Instant, limit: int) -> int:
        """Remove figures of before an instant; how many."""

    async def census(self) -> list[Standing]:
        """How many unfinished jobs there are, and since when the first of them could run. Reads all of them."""

    async def dead_census(self) -> list[Standing]:
        """How many dead letters there are. Reads an index of all of them."""


class Holding(NamedTuple):
    """How many jobs of a tenant a worker holds."""

    worker: WorkerId
    tenant: str
    jobs: int


class Queues(Protocol):
    """What is set for queues, and what workers hold of them."""

    async def queues(self) -> list[Queue]:
        """Those that something was set for, by name."""

    async def save_queue(self, queue: Queue) -> None:
        """Set this for a queue, from now on."""

    async def holding(self) -> list[Holding]:
        """How many jobs each worker holds. May read all ready and running jobs."""
