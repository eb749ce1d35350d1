"""Streams of events: one tail of the feed for each node, which all its readers share."""

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from typing import Literal, Protocol

from holdfast import tasks
from holdfast.api.events.event_stream import EventFilter, EventReader, Reason, change_of
from holdfast.engine.changes.tail import Tail
from holdfast.engine.periodic import pause_after
from holdfast.errors import HoldfastError, RateLimited
from holdfast.model.access import Caller
from holdfast.model.change_log import ChangeEntry, JobChange
from holdfast.model.ids import JobId
from holdfast.store.port.store import Store

RECHECK_INTERVAL_S = 10.0
"""Seconds between two looks whether a reader's key was revoked."""

MAX_STREAMS_PER_KEY, MAX_STREAMS_PER_TENANT, MAX_STREAMS_PER_NODE = 5, 50, 1_000

_MAX_MISSED_ROWS = 5_000
"""Rows that are read for a reader who comes back; one who missed more begins anew."""

_TICK_INTERVAL_S = 1.0
_RETRY_AFTER_S = 5.0


class StillGood(Protocol):
    """Knows whether what a caller came with would still be accepted."""

    async def still_good(self, caller: Caller) -> bool:
        """Whether it would."""


class EventBroadcaster:
    """All streams of one node. Nothing is asked of the database while there are none."""

    def __init__(
        self,
        store: Store,
        auth: StillGood,
        stopping: asyncio.Event,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._auth = auth
        self._stopping = stopping
        self._monotonic = monotonic
        self._readers: dict[str | None, set[EventReader]] = defaultdict(set)
        """By the tenant they see; None is all."""
        self._count = 0
        self._by_key: Counter[str] = Counter()
        self._by_tenant: Counter[str] = Counter()
        self._running: asyncio.Task[None] | None = None
        self._begun: asyncio.Future[Tail] | None = None
        self._checked = 0.0

    def __len__(self) -> int:
        return self._count

    def open(self, caller: Caller, wanted: EventFilter, last: int | None, job: JobChange | None = None) -> EventReader:
        """A stream for a caller who may see what is wanted; `RateLimited` when there are enough.

        `job`: the one that is watched, as it is.
        """
        key = caller.key or caller.name
        for have, most, whose in (
            (self._by_key[key], MAX_STREAMS_PER_KEY, "with this key"),
            (self._by_tenant[caller.tenant], MAX_STREAMS_PER_TENANT, "of this tenant"),
            (self._count, MAX_STREAMS_PER_NODE, "on this node"),
        ):
            if have >= most:
                raise RateLimited(
                    f"{most} streams {whose} are open already: close one first", retry_after=_RETRY_AFTER_S
                )
        reader = EventReader(self, caller, wanted, last, self._monotonic(), job=job)
        self._readers[wanted.tenant].add(reader)
        self._count += 1
        self._by_key[key] += 1
        self._by_tenant[caller.tenant] += 1
        if self._running is None:
            self._begun = asyncio.get_running_loop().create_future()
            self._running = tasks.start(self._run(self._begun), name="holdfast event streams")
        return reader

    def leave(self, reader: EventReader) -> None:
        """A stream is over."""
        here = self._readers.get(reader.wanted.tenant, set())
        if reader not in here:
            return
        here.discard(reader)
        if not here:
            del self._readers[reader.wanted.tenant]
        self._count -= 1
        self._by_key[reader.caller.key or reader.caller.name] -= 1
        self._by_tenant[reader.caller.tenant] -= 1
        self._by_key += Counter()
        self._by_tenant += Counter()
        if not self._count and self._running is not None:
            self._running.cancel()
            self._running = None

    async def tail(self) -> Tail:
        """The tail that all read from, once it has begun."""
        if self._begun is None:
            raise RuntimeError("no stream is open")
        return await asyncio.shield(self._begun)

    async def missed(self, last: int, upto: int) -> list[ChangeEntry] | Literal["expired", "behind"]:
        """Rows that a reader missed who has read up to `last`; or why they cannot be told."""
        kept = await self._store.single(lambda tx: tx.change_log_range())
        if last < kept.pruned or last > max(kept.last, upto):
            return "expired"
        if upto - last > _MAX_MISSED_ROWS:
            return "behind"
        found: list[ChangeEntry] = []
        while last < upto:
            rows = await self._store.single(lambda tx, after=last: tx.changes_after(after, 500))  # type: ignore[misc]
            if not rows:
                break
            found += [entry for entry in rows if entry.seq <= upto]
            last = rows[-1].seq
        return found

    def publish(self, entry: ChangeEntry, low_water: int) -> None:
        """Hand a row to those who may see something of it."""
        now = self._monotonic()
        texts: dict[int, bytes] = {}
        tenants = {each.tenant for each in entry.body.listed()} | {each.tenant for each in entry.body.unlisted()}
        for tenant in (None, *tenants):
            for reader in self._readers.get(tenant, ()):
                reader.take(entry, low_water, texts, now)

    async def look(self, ids: Collection[JobId]) -> dict[JobId, JobChange]:
        """Jobs as they are, those that are still there."""
        found = await self._store.single(lambda tx: tx.get(ids))
        return {job.id: change_of(job) for job in found}

    async def look_up(self, low_water: int) -> None:
        """Find out what became of jobs that are watched one by one, where so many moved that none was named."""
        unsure = [(reader, reader.job) for reader in self._all() if reader.unsure and reader.job is not None]
        if unsure:
            found = await self.look({job.id for _, job in unsure})
            now = self._monotonic()
            for reader, job in unsure:
                reader.learn(found.get(job.id), low_water, now)

    def tick(self, low_water: int) -> None:
        """A second has passed."""
        now = self._monotonic()
        for reader in self._all():
            reader.tick(now, low_water)

    async def check_keys(self) -> None:
        """End the streams of callers who would not be let in any more."""
        readers = self._all()
        good = {caller: await self._auth.still_good(caller) for caller in {reader.caller for reader in readers}}
        for reader in readers:
            if not good[reader.caller]:
                reader.end("revoked")

    def end_all(self, reason: Reason) -> None:
        """End all streams."""
        for reader in self._all():
            reader.end(reason)

    def _all(self) -> list[EventReader]:
        return [reader for readers in self._readers.values() for reader in readers]

    async def _run(self, begun: asyncio.Future[Tail]) -> None:
        tail = Tail(self._store)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read(tail, begun), name="holdfast streams")
                group.create_task(self._keep_time(tail), name="holdfast streams' clock")
                group.create_task(self._stop(), name="holdfast streams' stop")
        finally:
            begun.cancel()
            tail.close()

    async def _read(self, tail: Tail, begun: asyncio.Future[Tail]) -> None:
        failures = 0
        while True:
            try:
                if not begun.done():
                    await tail.begin()
                    begun.set_result(tail)
                for entry in await tail.more():
                    self.publish(entry, tail.low_water)
                    tail.mark_seen(entry)
                tail.expire_gaps()
                await self.look_up(tail.low_water)
                await tail.wait()
                failures = 0
            except HoldfastError:  # the database is away: readers stay, and hear of it all when it is back
                failures += 1
                await asyncio.sleep(pause_after(failures, 0.2))

    async def _keep_time(self, tail: Tail) -> None:
        while True:
            await asyncio.sleep(_TICK_INTERVAL_S)
            self.tick(tail.low_water)
            now = self._monotonic()
            if now - self._checked >= RECHECK_INTERVAL_S:
                self._checked = now
                with contextlib.suppress(HoldfastError):  # the database is away: asked again in a second
                    await self.check_keys()

    async def _stop(self) -> None:
        await self._stopping.wait()
        self.end_all("stopping")
