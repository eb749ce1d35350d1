"""Limits on what runs, and what rests, on any of the databases."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.model.ids import JobId
from holdfast.model.job import Job
from holdfast.model.lane import FREED, Lane, LaneReady
from holdfast.model.limit import (
    DEFAULT_CONCURRENCY_PER_KEY,
    TOKEN,
    DispatchSettings,
    Limit,
    LimitKind,
    LimitName,
    Pause,
    PauseKind,
    Rate,
    key_limit,
    slots_to_release,
)
from holdfast.model.queue import Queue
from holdfast.model.state import AWAITING_KEY, Status
from holdfast.model.time import Duration, Instant
from holdfast.model.transition import Transition
from holdfast.store.port.limits import KeyHolder
from holdfast.store.sql.codec import Row

ConcurrencyKey = tuple[str, str]
"""A tenant and one of its concurrency keys."""

_ANY_NUMBER = 1 << 31


class KeyCapacity(NamedTuple):
    """How many jobs of a key may have a turn, those counted that have one, and how many may get one now."""

    tenant: str
    name: str
    most: int
    tokens: int


class SqlLimits(ABC):
    """Limits within a transaction. See `holdfast.store.port.store.Limits`."""

    ready_lanes: list[LaneReady]

    @abstractmethod
    async def rows(self, name: str, /, **parameters: Any) -> Sequence[Row]:
        """Run a named statement and return its rows."""

    @abstractmethod
    async def count(self, name: str, /, **parameters: Any) -> int:
        """Run a named statement and return the number of changed rows."""

    @abstractmethod
    async def now(self) -> Instant:
        """Return the database clock."""

    @abstractmethod
    async def queues(self) -> list[Queue]:
        """Return the queues that have settings."""

    @abstractmethod
    async def each(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement for each of these, of which there is one at least, in their order."""

    @abstractmethod
    async def lock_rows(self, names: Sequence[LimitName]) -> list[Limit]:
        """Lock and return the limits that have a row, in the order given."""

    @abstractmethod
    async def begin_keys(self, keys: Sequence[ConcurrencyKey]) -> None:
        """Create missing limit rows for these keys, where rows are locked at all."""

    @abstractmethod
    async def next_in_line(
        self, asks: Sequence[KeyCapacity], queues: Sequence[str], types: Sequence[str]
    ) -> Iterable[Row]:
        """Make the next jobs that wait for these keys ready, but for those of these queues and types.

        (queue, tenant, priority, seq, key) of each.
        """

    @abstractmethod
    async def yield_turn(self, holder: KeyHolder) -> bool:
        """Put a ready job at the end of the line for its key."""

    @abstractmethod
    async def uncounted(self, name: LimitName) -> int:
        """Count running jobs that the limit does not count."""

    async def dispatch_settings_version(self) -> tuple[int, Instant]:
        version, at = (await self.rows("dispatch_settings_version"))[0]
        return version, Instant(at)

    async def dispatch_settings(self) -> DispatchSettings:
        # The version first: what is changed meanwhile is read again.
        version, _ = await self.dispatch_settings_version()
        limited = frozenset(_name(row) for row in await self.rows("limited"))
        weights = {row[0]: row[1] for row in await self.rows("weights")}
        return DispatchSettings(version, tuple(await self.queues()), tuple(await self.pauses()), limited, weights)

    async def limits(
        self, kind: LimitKind | None = None, *, tenant: str | None = None, limit: int = 1_000
    ) -> list[Limit]:
        first, last = (min(LimitKind), max(LimitKind)) if kind is None else (kind, kind)
        asked = {"everybody": int(tenant is None), "tenant": tenant or ""}
        found = [
            limit_of(row) for row in await self.rows("limits", first=int(first), last=int(last), limit=limit, **asked)
        ]
        return [await self._counted(each) for each in found]

    async def limits_named(self, names: Collection[LimitName]) -> list[Limit]:
        found: list[Limit] = []
        for name in sorted(set(names)):
            rows = await self.rows("limit_named", **self._asked(name))
            if rows or name.kind is LimitKind.KEY:
                found.append(await self._counted(limit_of(rows[0]) if rows else Limit(name)))
        return [each for each in found if each.limits or each.of.kind is LimitKind.KEY]

    async def set_limit(self, name: LimitName, max_running: int | None, rate: Rate | None, by: str) -> None:
        limit, per, burst = rate or (None, None, None)
        asked = {"max_running": max_running, "rate": limit, "per": per, "burst": burst, "changed_by": by}
        await self.count("set_limit", **self._asked(name), **asked, tokens=(burst or 0) * TOKEN)
        await self.count("bump_settings_version")

    async def save_limits(self, limits: Sequence[Limit]) -> None:
        rows = [
            {
                **self._asked(limit.of),
                "used": limit.used,
                "unsettled": int(limit.unsettled),
                "tokens": limit.tokens,
                "refilled_at": limit.refilled_at,
            }
            for limit in limits
        ]
        if rows:
            await self.each("save_limit", rows)

    async def pauses(self) -> list[Pause]:
        return [Pause(PauseKind(row[0]), *row[1:]) for row in await self.rows("pauses")]

    async def save_pause(self, pause: Pause) -> None:
        asked = {"reason": pause.reason, "until": pause.until, "changed_by": pause.changed_by}
        await self.count("save_pause", kind=int(pause.kind), name=pause.name, **asked)
        await self.count("bump_settings_version")

    async def end_pause(self, kind: PauseKind, name: str) -> bool:
        ended = await self.count("end_pause", kind=int(kind), name=name) == 1
        await self.count("bump_settings_version")
        return ended

    async def pass_turns(self, keys: Collection[ConcurrencyKey]) -> int:
        return await self._pass_turns(keys)

    async def _pass_turns(
        self, keys: Collection[ConcurrencyKey], *, queues: Sequence[str] = ("",), types: Sequence[str] = ("",)
    ) -> int:
        if not keys:
            return 0
        names = [key_limit(*key) for key in sorted(keys)]
        known = {limit.of: limit for limit in await self.lock_rows(names)}
        if missing := [(name.tenant, name.name) for name in names if name not in known]:
            await self.begin_keys(missing)
            # Asked again in the order of all: whoever made one of them first holds it.
            known = {limit.of: limit for limit in await self.lock_rows(names)}
        limits = [known.get(name, Limit(name)) for name in names]
        rated = any(limit.rate is not None for limit in limits)
        now = await self.now() if rated else Instant(0)
        asks = [
            KeyCapacity(
                limit.of.tenant,
                limit.of.name,
                DEFAULT_CONCURRENCY_PER_KEY if limit.max_running is None else limit.max_running,
                _ANY_NUMBER if limit.rate is None else max(0, limit.refilled(now).tokens) // TOKEN,
            )
            for limit in limits
        ]
        passed: Counter[LimitName] = Counter()
        for queue, tenant, priority, seq, key in await self.next_in_line(asks, queues, types):
            self.ready_lanes.append(LaneReady(Lane(queue, tenant, priority), seq))
            passed[key_limit(tenant, key)] += 1
        spent = [limit._replace(used=0).after(passed[limit.of], now) for limit in limits if limit.rate is not None]
        if spent and passed:
            await self.save_limits([limit._replace(used=0) for limit in spent])
        return passed.total()

    async def waiting_keys(self, after: ConcurrencyKey, limit: int) -> list[ConcurrencyKey]:
        rows = await self.rows("waiting_keys", tenant=after[0], name=self.key_text(after[1]), limit=limit)
        return [(row[0], _text(row[1])) for row in rows]

    async def turns_of(self, key: ConcurrencyKey, most: int) -> list[JobId]:
        rows = await self.rows("turns_of", tenant=key[0], name=self.key_text(key[1]), most=most)
        return [_id(row[0]) for row in rows]

    async def has_turn(self, job: JobId) -> bool:
        rows = await self.rows("stored_status", id=job)
        return bool(rows) and rows[0][0] == Status.READY.code

    async def key_holders(self, keys: Collection[ConcurrencyKey]) -> list[KeyHolder]:
        return [
            KeyHolder(_id(row[0]), row[1], row[2], _text(row[3]), queue=row[4], type=row[5])
            for tenant, key in sorted(keys)
            for row in await self.rows("key_holders", tenant=tenant, name=self.key_text(key))
        ]

    async def yield_turns(self, holders: Sequence[KeyHolder]) -> int:
        yielded = 0
        for holder in holders:
            key = (holder.tenant, holder.key)
            await self.pass_turns([key])  # has the row of the key locked
            if not await self.yield_turn(holder):
                continue
            if await self._pass_turns([key], queues=[holder.queue], types=[holder.type]):
                yielded += 1
            else:  # there are no others but of its own kind: it is as good as any of them
                await self.pass_turns([key])
        return yielded

    async def prune_limits(self, limit: int) -> int:
        return await self.count("prune_limits", limit=limit)

    async def let_go(self, transitions: Sequence[Transition]) -> None:
        """Give back what these jobs held, which were moved, and let others have it."""
        ended = [transition.job for transition in transitions if transition.was is Status.RUNNING]
        await self.give_back(ended)
        await self.pass_turns(keys_of([transition.job for transition in transitions]))

    async def give_back(self, jobs: Sequence[Job]) -> None:
        """Give back what limits count of these running jobs."""
        held = slots_to_release(jobs)
        if not held:
            return
        await self.each("give_back", [{**self._asked(name), "jobs": jobs} for name, jobs in held])
        self.gave_back(jobs)

    def gave_back(self, jobs: Iterable[Job]) -> None:
        """Tell whoever waits for room in what these were counted in."""
        freed = {job.queue for job in jobs if job.slots}
        self.ready_lanes += [LaneReady(Lane(queue, FREED, 0), 0) for queue in freed]

    async def _counted(self, limit: Limit) -> Limit:
        if limit.of.kind is not LimitKind.KEY:
            return limit
        rows = await self.rows("turns_taken", tenant=limit.of.tenant, name=self.key_text(limit.of.name))
        return limit._replace(used=rows[0][0])

    def _asked(self, name: LimitName) -> dict[str, Any]:
        return {"kind": int(name.kind), "tenant": name.tenant, "name": self.key_text(name.name)}

    def key_text(self, key: str) -> Any:
        """A name as this database compares it."""
        return key


def binds(transition: Transition) -> bool:
    """Whether a job is under a limit that must know of this move."""
    return transition.job.slots != 0 or transition.job.concurrency_key is not None


def keys_of(jobs: Iterable[Any]) -> set[ConcurrencyKey]:
    """The concurrency keys of jobs, new ones or stored ones."""
    return {(job.tenant, job.concurrency_key) for job in jobs if job.concurrency_key is not None}


def stored_code(transition: Transition) -> int:
    """What is stored for where a job goes: one with a concurrency key gets in line before it is ready."""
    return (
        AWAITING_KEY
        if transition.to is Status.READY and transition.job.concurrency_key is not None
        else transition.to.code
    )


def limit_of(row: Row) -> Limit:
    """A row of the columns `limit`."""
    _, _, _, max_running, rate, per, burst, used, unsettled, tokens, refilled_at, changed_at, changed_by = row
    bucket = None if rate is None else Rate(rate, Duration(per), burst)
    return Limit(
        _name(row),
        max_running,
        bucket,
        used,
        bool(unsettled),
        tokens,
        Instant(refilled_at),
        Instant(changed_at),
        changed_by,
    )


def _name(row: Row) -> LimitName:
    return LimitName(LimitKind(row[0]), row[1], _text(row[2]))


def _text(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode()


def _id(stored: Any) -> JobId:
    return JobId(UUID(bytes=stored) if isinstance(stored, bytes) else stored)
