"""What the engine asks of a database about limits and pauses. A part of `holdfast.store.port.store`."""

from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from holdfast.model.ids import JobId, WorkerId
from holdfast.model.limit import Limit, LimitKind, LimitName, Pause, PauseKind, Rate, Terms
from holdfast.model.time import Instant


class KeyHolder(NamedTuple):
    """A ready job that has a turn of its key."""

    id: JobId
    seq: int
    tenant: str
    key: str
    queue: str
    type: str


class Limits(Protocol):
    """Limits on what runs, and what rests."""

    async def terms_version(self) -> tuple[int, Instant]:
        """Which terms hold now, and what time it is."""

    async def terms(self) -> Terms:
        """What claims go by."""

    async def limits(
        self, kind: LimitKind | None = None, *, tenant: str | None = None, limit: int = 1_000
    ) -> list[Limit]:
        """Those that somebody set, by kind, tenant and name."""

    async def limits_named(self, names: Collection[LimitName]) -> list[Limit]:
        """How these stand; those of keys with `used` counted, also where nobody set one. Others only if set."""

    async def set_limit(self, name: LimitName, max_running: int | None, rate: Rate | None, by: str) -> None:
        """Set this from now on; None is no limit, for a key its default. A bucket begins full."""

    async def lock_limits(self, worker: WorkerId, names: Collection[LimitName]) -> tuple[list[Limit], Instant] | None:
        """Lock those of these that are set, in their order; how they stand, and about what time it is.

        None if the lease is gone. The worker's lease is locked before them where it is locked at all, so that a reap
        and a claim never wait for each other.
        """

    async def uncounted(self, name: LimitName) -> int:
        """How many running jobs of a queue or tenant its limit does not count. May read all that run."""

    async def save_limits(self, limits: Sequence[Limit]) -> None:
        """Write how these stand, under their locks."""

    async def pass_turns(self, keys: Collection[tuple[str, str]]) -> int:
        """Make ready the next of those that wait for these keys (tenant, key), as many as fit; how many."""

    async def waiting_keys(self, after: tuple[str, str], limit: int) -> list[tuple[str, str]]:
        """Keys that jobs wait for, in their order, those after this one."""

    async def turns_of(self, key: tuple[str, str], most: int) -> list[JobId]:
        """Jobs that have a turn of a key, running or about to, no more than so many."""

    async def has_turn(self, job: JobId) -> bool:
        """Whether a ready job with a key has a turn of it, rather than being in line for one."""

    async def key_holders(self, keys: Collection[tuple[str, str]]) -> list[KeyHolder]:
        """Ready jobs that have a turn of these keys."""

    async def yield_turns(self, holders: Sequence[KeyHolder]) -> int:
        """Have these wait again where they are still ready, and others, of other queues or types, run; how many."""

    async def prune_limits(self, limit: int) -> int:
        """Forget rows of limits that limit nothing and count nothing; how many."""

    async def pauses(self) -> list[Pause]:
        """What rests besides queues, also what is over."""

    async def save_pause(self, pause: Pause) -> None:
        """Have this rest from now on."""

    async def end_pause(self, kind: PauseKind, name: str) -> bool:
        """Have it rest no more; False when it did not."""
