"""Port for the change log, its rollups, and queues. Part of `holdfast.store.port.store`."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from holdfast.model.change_log import ChangeEntry
from holdfast.model.ids import WorkerId
from holdfast.model.queue import Queue
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant


class ChangeLogRange(NamedTuple):
    """Range of the change log: numbers up to `pruned` may be gone, `last` is the highest."""

    pruned: int
    last: int


class RollupCursor(NamedTuple):
    """Rollup position.

    Entries up to `seq`, except those in `gaps`, are rolled up.
    Minutes before `hours` are added to their hours and days.
    """

    seq: int
    gaps: bytes
    pruned: int
    hours: Instant
    lost: int = 0
    """Total number of workers whose lease expired, according to those rows."""


class Rollup(NamedTuple):
    """Stored stats of one series and interval. Histograms are JSON."""

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


class ServiceSlice(NamedTuple):
    """Cost of a tenant's attempts that ended in one interval, and the longest wait among them."""

    tenant: str
    at: Instant
    cost: int
    waited: Duration


class StatusCount(NamedTuple):
    """Number of jobs of one tenant, queue, type and status, and their earliest due time."""

    tenant: str
    queue: str
    type: str
    status: Status
    jobs: int
    since: Instant | None


class ChangeLogRepository(Protocol):
    """Change log, to which every transaction that changes jobs or workers appends.

    Numbers are assigned before the commit, so a lower one can appear after a higher one.
    """

    async def changes_after(self, seq: int, limit: int) -> list[ChangeEntry]:
        """Return entries with higher numbers, in order."""

    async def changes_at(self, numbers: Collection[int]) -> list[ChangeEntry]:
        """Return the existing entries among these numbers, in order."""

    async def change_numbers(self, seq: int, limit: int) -> list[int]:
        """Return the entry numbers above this one, in order."""

    async def change_log_range(self) -> ChangeLogRange:
        """Return the range of the change log."""

    async def rollup_cursor(self) -> RollupCursor:
        """Return the rollup position."""

    async def lock_rollup_cursor(self) -> RollupCursor | None:
        """Lock and return the rollup position; None if another transaction holds the lock."""

    async def save_rollup_cursor(self, rollup_cursor: RollupCursor) -> None:
        """Save the rollup position; requires the lock."""

    async def prune_changes(self, upto: int, keep: Duration, limit: int) -> int | None:
        """Delete entries up to `upto` that are older than `keep`; return the last deleted number."""

    async def rollups(self, span: Duration, tenant: str, since: Instant, before: Instant) -> list[Rollup]:
        """Return the stats of a tenant in `since` ≤ time < `before`, oldest first.

        The tenant '' stands for all tenants together.
        """

    async def served(self, span: Duration, since: Instant, limit: int) -> list[ServiceSlice]:
        """Return the service that each tenant received since an instant, in no order."""

    async def rollups_at(self, span: Duration, at: Instant) -> list[Rollup]:
        """Return the stats of every tenant, and of all together, in one minute or hour."""

    async def save_rollups(self, span: Duration, rollups: Sequence[Rollup]) -> None:
        """Insert or replace these rollups."""

    async def prune_rollups(self, span: Duration, before: Instant, limit: int) -> int:
        """Delete rollups before an instant; return how many."""

    async def remove_rollups(self, span: Duration, tenant: str, job_type: str) -> int:
        """Delete the rollups of a tenant ('': of all together) and a job type; return how many."""

    async def census(self) -> list[StatusCount]:
        """Count unfinished jobs and find the earliest due time of each group. Reads all of them."""

    async def dead_census(self) -> list[StatusCount]:
        """Count dead letters. Reads an index of all of them."""


class HeldCount(NamedTuple):
    """Number of jobs of a tenant that a worker holds."""

    worker: WorkerId
    tenant: str
    jobs: int


class QueueRepository(Protocol):
    """Queue settings, and the jobs that workers hold."""

    async def queues(self) -> list[Queue]:
        """Return the queues that have settings, by name."""

    async def save_queue(self, queue: Queue) -> None:
        """Save the settings of a queue."""

    async def held_counts(self) -> list[HeldCount]:
        """Count the jobs each worker holds. May read all ready and running jobs."""
