"""Port for concurrency and rate limits, and pauses. Part of `holdfast.store.port.store`."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from holdfast.model.ids import JobId, WorkerId
from holdfast.model.limit import DispatchSettings, Limit, LimitKind, LimitName, Pause, PauseKind, Rate
from holdfast.model.time import Instant


class KeyHolder(NamedTuple):
    """Ready job that holds a slot of its concurrency key."""

    id: JobId
    seq: int
    tenant: str
    key: str
    queue: str
    type: str


class LimitRepository(Protocol):
    """Concurrency and rate limits, and pauses."""

    async def dispatch_settings_version(self) -> tuple[int, Instant]:
        """Return the version of the dispatch settings and the database time."""

    async def dispatch_settings(self) -> DispatchSettings:
        """Return the settings that claims follow."""

    async def limits(
        self, kind: LimitKind | None = None, *, tenant: str | None = None, limit: int = 1_000
    ) -> list[Limit]:
        """Return the configured limits, by kind, tenant and name."""

    async def limits_named(self, names: Collection[LimitName]) -> list[Limit]:
        """Return these limits if configured; those of keys always, with `used` counted."""

    async def set_limit(self, name: LimitName, max_running: int | None, rate: Rate | None, by: str) -> None:
        """Set a limit; None is unlimited, or the default for a key. A token bucket starts full."""

    async def lock_limits(self, worker: WorkerId, names: Collection[LimitName]) -> tuple[list[Limit], Instant] | None:
        """Lock and return those of these limits that are set, and the time after the last lock.

        Returns None if the lease is gone. Locks the worker's lease first, if at all, so that a reap and a claim cannot
        deadlock.
        """

    async def uncounted(self, name: LimitName) -> int:
        """Count running jobs of a queue or tenant that its limit does not count.

        May read all running jobs.
        """

    async def save_limits(self, limits: Sequence[Limit]) -> None:
        """Save these limits; requires their locks."""

    async def grant_key_slots(self, keys: Collection[tuple[str, str]]) -> int:
        """Make the next jobs that wait for these (tenant, key) pairs ready; return how many."""

    async def waiting_keys(self, after: tuple[str, str], limit: int) -> list[tuple[str, str]]:
        """Return keys that jobs wait for, in order, after this one."""

    async def key_holder_ids(self, key: tuple[str, str], max_count: int) -> list[JobId]:
        """Return at most `max_count` jobs that hold a slot of a key, running or ready."""

    async def holds_key_slot(self, job: JobId) -> bool:
        """Return whether a ready job holds a slot of its key instead of waiting for one."""

    async def key_holders(self, keys: Collection[tuple[str, str]]) -> list[KeyHolder]:
        """Return the ready jobs that hold a slot of these keys."""

    async def yield_key_slots(self, holders: Sequence[KeyHolder]) -> int:
        """Hand the slots of these ready jobs to jobs of other queues or types; return how many."""

    async def prune_limits(self, limit: int) -> int:
        """Delete rows that limit nothing and count nothing; return how many."""

    async def pauses(self) -> list[Pause]:
        """Return the pauses other than those of queues, including expired ones."""

    async def save_pause(self, pause: Pause) -> None:
        """Save a pause."""

    async def end_pause(self, kind: PauseKind, name: str) -> bool:
        """End a pause; return False if there was none."""
