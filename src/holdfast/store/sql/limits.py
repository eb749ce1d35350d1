"""Concurrency and rate limits, and pauses, for all dialects."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.model.ids import JobId
from holdfast.model.job import Job, JobSpec
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
from holdfast.store.port.limits import KeyHolder, LimitRepository
from holdfast.store.sql.codec import Row
from holdfast.store.sql.runner import StatementRunner

ConcurrencyKey = tuple[str, str]
"""Tenant and concurrency key."""

_UNLIMITED_TOKENS = 1 << 31


class KeyCapacity(NamedTuple):
    """Capacity of a concurrency key: slots in total, and starts that its rate limit allows now."""

    tenant: str
    name: str
    slots: int
    tokens: int


class SqlLimits(StatementRunner, LimitRepository):
    """Limits and pauses within a transaction."""

    ready_lanes: list[LaneReady]

    @abstractmethod
    async def queues(self) -> list[Queue]:
        """Return the queues that have settings."""

    @abstractmethod
    async def each(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement for each row, in order; there is at least one row."""

    @abstractmethod
    async def lock_rows(self, names: Sequence[LimitName]) -> list[Limit]:
        """Lock and return the limits that have a row, in the order given."""

    @abstractmethod
    async def begin_keys(self, keys: Sequence[ConcurrencyKey]) -> None:
        """Create missing limit rows for these keys, in dialects that lock rows."""

    @abstractmethod
    async def grant_slots(
        self, capacities: Sequence[KeyCapacity], queues: Sequence[str], types: Sequence[str]
    ) -> Iterable[Row]:
        """Make the next jobs that wait for these keys ready, except those of these queues and types.

        Returns (queue, tenant, priority, seq, key) of each.
        """

    @abstractmethod
    async def yield_slot(self, holder: KeyHolder) -> bool:
        """Move a ready job behind the jobs that wait for its key; return False if it is not ready."""

    async def dispatch_settings_version(self) -> tuple[int, Instant]:
        version, at = (await self.rows("dispatch_settings_version"))[0]
        return version, Instant(at)

    async def dispatch_settings(self) -> DispatchSettings:
        # Read the version first, so that a concurrent change leads to another read.
        version, _ = await self.dispatch_settings_version()
        limited = frozenset(_name(row) for row in await self.rows("limited"))
        weights = {row[0]: row[1] for row in await self.rows("weights")}
        return DispatchSettings(version, tuple(await self.queues()), tuple(await self.pauses()), limited, weights)

    async def limits(
        self, kind: LimitKind | None = None, *, tenant: str | None = None, limit: int = 1_000
    ) -> list[Limit]:
        first, last = (min(LimitKind), max(LimitKind)) if kind is None else (kind, kind)
        rows = await self.rows(
            "limits",
            first=int(first),
            last=int(last),
            all_tenants=int(tenant is None),
            tenant=tenant or "",
            limit=limit,
        )
        return [await self._counted(limit_of(row)) for row in rows]

    async def limits_named(self, names: Collection[LimitName]) -> list[Limit]:
        found: list[Limit] = []
        for name in sorted(set(names)):
            rows = await self.rows("limit_named", **self._identity(name))
            if rows or name.kind is LimitKind.KEY:
                found.append(await self._counted(limit_of(rows[0]) if rows else Limit(name)))
        return [limit for limit in found if limit.is_set or limit.of.kind is LimitKind.KEY]

    async def set_limit(self, name: LimitName, max_running: int | None, rate: Rate | None, by: str) -> None:
        limit, per, burst = rate or (None, None, None)
        await self.count(
            "set_limit",
            **self._identity(name),
            max_running=max_running,
            rate=limit,
            per=per,
            burst=burst,
            changed_by=by,
            tokens=(burst or 0) * TOKEN,
        )
        await self.count("bump_settings_version")

    async def save_limits(self, limits: Sequence[Limit]) -> None:
        rows = [
            {
                **self._identity(limit.of),
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
        await self.count(
            "save_pause",
            kind=int(pause.kind),
            name=pause.name,
            reason=pause.reason,
            until=pause.until,
            changed_by=pause.changed_by,
        )
        await self.count("bump_settings_version")

    async def end_pause(self, kind: PauseKind, name: str) -> bool:
        ended = await self.count("end_pause", kind=int(kind), name=name) == 1
        await self.count("bump_settings_version")
        return ended

    async def grant_key_slots(self, keys: Collection[ConcurrencyKey]) -> int:
        return await self._grant_key_slots(keys)

    async def _grant_key_slots(
        self, keys: Collection[ConcurrencyKey], *, queues: Sequence[str] = ("",), types: Sequence[str] = ("",)
    ) -> int:
        if not keys:
            return 0
        names = [key_limit(*key) for key in sorted(keys)]
        known = {limit.of: limit for limit in await self.lock_rows(names)}
        if missing := [(name.tenant, name.name) for name in names if name not in known]:
            await self.begin_keys(missing)
            # Lock all again in order: a concurrent transaction may have created one of them first.
            known = {limit.of: limit for limit in await self.lock_rows(names)}
        limits = [known.get(name, Limit(name)) for name in names]
        rated = any(limit.rate is not None for limit in limits)
        now = await self.now() if rated else Instant(0)
        capacities = [
            KeyCapacity(
                limit.of.tenant,
                limit.of.name,
                DEFAULT_CONCURRENCY_PER_KEY if limit.max_running is None else limit.max_running,
                _UNLIMITED_TOKENS if limit.rate is None else max(0, limit.refilled(now).tokens) // TOKEN,
            )
            for limit in limits
        ]
        granted: Counter[LimitName] = Counter()
        for queue, tenant, priority, seq, key in await self.grant_slots(capacities, queues, types):
            self.ready_lanes.append(LaneReady(Lane(queue, tenant, priority), seq))
            granted[key_limit(tenant, key)] += 1
        spent = [limit._replace(used=0).after(granted[limit.of], now) for limit in limits if limit.rate is not None]
        if spent and granted:
            await self.save_limits([limit._replace(used=0) for limit in spent])
        return granted.total()

    async def waiting_keys(self, after: ConcurrencyKey, limit: int) -> list[ConcurrencyKey]:
        rows = await self.rows("waiting_keys", tenant=after[0], name=self.key_text(after[1]), limit=limit)
        return [(row[0], _text(row[1])) for row in rows]

    async def key_holder_ids(self, key: ConcurrencyKey, max_count: int) -> list[JobId]:
        rows = await self.rows("key_holder_ids", tenant=key[0], name=self.key_text(key[1]), max_count=max_count)
        return [_id(row[0]) for row in rows]

    async def holds_key_slot(self, job: JobId) -> bool:
        rows = await self.rows("stored_status", id=job)
        return bool(rows) and rows[0][0] == Status.READY.code

    async def key_holders(self, keys: Collection[ConcurrencyKey]) -> list[KeyHolder]:
        return [
            KeyHolder(_id(row[0]), row[1], row[2], _text(row[3]), queue=row[4], type=row[5])
            for tenant, key in sorted(keys)
            for row in await self.rows("key_holders", tenant=tenant, name=self.key_text(key))
        ]

    async def yield_key_slots(self, holders: Sequence[KeyHolder]) -> int:
        yielded = 0
        for holder in holders:
            key = (holder.tenant, holder.key)
            await self.grant_key_slots([key])  # locks the row of the key
            if not await self.yield_slot(holder):
                continue
            if await self._grant_key_slots([key], queues=[holder.queue], types=[holder.type]):
                yielded += 1
            else:  # only jobs of the same queue and type wait, so that it need not yield
                await self.grant_key_slots([key])
        return yielded

    async def prune_limits(self, limit: int) -> int:
        return await self.count("prune_limits", limit=limit)

    async def release_and_grant(self, transitions: Sequence[Transition]) -> None:
        """Release the slots of jobs whose transition was applied, and grant them to waiting jobs."""
        ended = [transition.job for transition in transitions if transition.was is Status.RUNNING]
        await self.release_slots(ended)
        await self.grant_key_slots(keys_of([transition.job for transition in transitions]))

    async def release_slots(self, jobs: Sequence[Job]) -> None:
        """Subtract these running jobs from the limits that count them."""
        counted = slots_to_release(jobs)
        if not counted:
            return
        await self.each("release_slots", [{**self._identity(name), "jobs": number} for name, number in counted])
        self.announce_free_slots(jobs)

    def announce_free_slots(self, jobs: Iterable[Job]) -> None:
        """Notify workers that wait for a limit which counted these jobs."""
        freed = {job.queue for job in jobs if job.slots}
        self.ready_lanes += [LaneReady(Lane(queue, FREED, 0), 0) for queue in freed]

    async def _counted(self, limit: Limit) -> Limit:
        if limit.of.kind is not LimitKind.KEY:
            return limit
        rows = await self.rows("count_key_holders", tenant=limit.of.tenant, name=self.key_text(limit.of.name))
        return limit._replace(used=rows[0][0])

    def _identity(self, name: LimitName) -> dict[str, Any]:
        return {"kind": int(name.kind), "tenant": name.tenant, "name": self.key_text(name.name)}


def is_limited(transition: Transition) -> bool:
    """Return True if a limit counts the job, so that the transition must update it."""
    return transition.job.slots != 0 or transition.job.concurrency_key is not None


def keys_of(jobs: Iterable[Job | JobSpec]) -> set[ConcurrencyKey]:
    """Return the concurrency keys of stored or submitted jobs."""
    return {(job.tenant, job.concurrency_key) for job in jobs if job.concurrency_key is not None}


def stored_code(transition: Transition) -> int:
    """Return the status code to store: a ready job with a concurrency key first waits for it."""
    return (
        AWAITING_KEY
        if transition.to is Status.READY and transition.job.concurrency_key is not None
        else transition.to.code
    )


def limit_of(row: Row) -> Limit:
    """Decode a row of the columns `limit`."""
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
