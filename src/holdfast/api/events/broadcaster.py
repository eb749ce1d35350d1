"""Event streams of a node: one tail of the change log, shared by all its readers."""

import asyncio
import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from typing import Literal, Protocol

from holdfast import tasks
from holdfast.api.events.event_stream import EventFilter, EventReader, change_of
from holdfast.engine.changes.tail import Tail
from holdfast.engine.periodic import failure_delay
from holdfast.errors import HoldfastError, RateLimited
from holdfast.model.access import Caller
from holdfast.model.change_log import ChangeEntry, JobChange
from holdfast.model.ids import JobId
from holdfast.store.port.store import Store
from holdfast.wire.events import ResetReason

RECHECK_INTERVAL_S = 10.0
"""Time between two checks whether the credentials of readers are still valid."""

MAX_STREAMS_PER_KEY, MAX_STREAMS_PER_TENANT, MAX_STREAMS_PER_NODE = 5, 50, 1_000

_MAX_MISSED_ROWS = 5_000
"""Maximum number of rows replayed after a reconnect; after a longer gap, readers start over."""

_TICK_INTERVAL_S = 1.0
_RETRY_AFTER_S = 5.0


class CredentialValidator(Protocol):
    """Check whether a caller's credentials are still valid."""

    async def is_still_valid(self, caller: Caller) -> bool:
        """Return whether the caller's credentials would be accepted now."""


class EventBroadcaster:
    """All event streams of one node; reads the database only while there are streams."""

    def __init__(
        self,
        store: Store,
        auth: CredentialValidator,
        stopping: asyncio.Event,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._auth = auth
        self._stopping = stopping
        self._monotonic = monotonic
        self._readers: dict[str | None, set[EventReader]] = defaultdict(set)
        """Readers by the tenant they see; None for readers that see all tenants."""
        self._count = 0
        self._by_key: Counter[str] = Counter()
        self._by_tenant: Counter[str] = Counter()
        self._running: asyncio.Task[None] | None = None
        self._started: asyncio.Future[Tail] | None = None
        self._checked = 0.0

    def __len__(self) -> int:
        return self._count

    def open(
        self, caller: Caller, event_filter: EventFilter, last: int | None, job: JobChange | None = None
    ) -> EventReader:
        """Open a stream. Raises `RateLimited` if too many are open.

        Args:
            caller: Caller, who must be allowed to see what the filter selects.
            event_filter: Events to send.
            last: Id of the last event that the client received; None to start now.
            job: Current state of the job to watch, if the stream watches one job.
        """
        key = caller.key or caller.name
        for count, maximum, owner in (
            (self._by_key[key], MAX_STREAMS_PER_KEY, "with this API key"),
            (self._by_tenant[caller.tenant], MAX_STREAMS_PER_TENANT, "of this tenant"),
            (self._count, MAX_STREAMS_PER_NODE, "on this node"),
        ):
            if count >= maximum:
                raise RateLimited(
                    f"{maximum} streams {owner} are already open: close one first", retry_after=_RETRY_AFTER_S
                )
        reader = EventReader(self, caller, event_filter, last, self._monotonic(), job=job)
        self._readers[event_filter.tenant].add(reader)
        self._count += 1
        self._by_key[key] += 1
        self._by_tenant[caller.tenant] += 1
        if self._running is None:
            self._started = asyncio.get_running_loop().create_future()
            self._running = tasks.start(self._run(self._started), name="holdfast event streams")
        return reader

    def leave(self, reader: EventReader) -> None:
        """Remove a reader whose stream has ended."""
        readers = self._readers.get(reader.filter.tenant, set())
        if reader not in readers:
            return
        readers.discard(reader)
        if not readers:
            del self._readers[reader.filter.tenant]
        self._count -= 1
        self._by_key[reader.caller.key or reader.caller.name] -= 1
        self._by_tenant[reader.caller.tenant] -= 1
        self._by_key += Counter()
        self._by_tenant += Counter()
        if not self._count and self._running is not None:
            self._running.cancel()
            self._running = None

    async def tail(self) -> Tail:
        """Return the shared tail, once it has started."""
        if self._started is None:
            raise RuntimeError("no stream is open")
        return await asyncio.shield(self._started)

    async def missed(self, last: int, upto: int) -> list[ChangeEntry] | Literal["expired", "behind"]:
        """Return the rows after `last` up to `upto`, or the reason why they cannot be replayed."""
        kept = await self._store.single(lambda tx: tx.change_log_range())
        if last < kept.pruned or last > max(kept.last, upto):
            return "expired"
        if upto - last > _MAX_MISSED_ROWS:
            return "behind"
        missed: list[ChangeEntry] = []
        while last < upto:
            rows = await self._store.single(lambda tx, after=last: tx.changes_after(after, 500))  # type: ignore[misc]
            if not rows:
                break
            missed += [entry for entry in rows if entry.seq <= upto]
            last = rows[-1].seq
        return missed

    def publish(self, entry: ChangeEntry, low_water: int) -> None:
        """Pass a row to the readers that may see part of it."""
        now = self._monotonic()
        texts: dict[int, bytes] = {}
        tenants = {each.tenant for each in entry.body.listed()} | {each.tenant for each in entry.body.unlisted()}
        for tenant in (None, *tenants):
            for reader in self._readers.get(tenant, ()):
                reader.add_entry(entry, low_water, texts, now)

    async def current(self, ids: Collection[JobId]) -> dict[JobId, JobChange]:
        """Return the current state of those jobs that still exist."""
        found = await self._store.single(lambda tx: tx.get(ids))
        return {job.id: change_of(job) for job in found}

    async def refresh_watched(self, low_water: int) -> None:
        """Read watched jobs that may be among changes which the log only counts."""
        stale = [(reader, reader.job) for reader in self._all() if reader.is_stale and reader.job is not None]
        if stale:
            jobs = await self.current({job.id for _, job in stale})
            now = self._monotonic()
            for reader, job in stale:
                reader.refresh(jobs.get(job.id), low_water, now)

    def tick(self, low_water: int) -> None:
        """Send counts and heartbeats; called every second."""
        now = self._monotonic()
        for reader in self._all():
            reader.tick(now, low_water)

    async def check_keys(self) -> None:
        """End the streams of callers whose credentials are no longer valid."""
        readers = self._all()
        is_valid = {caller: await self._auth.is_still_valid(caller) for caller in {reader.caller for reader in readers}}
        for reader in readers:
            if not is_valid[reader.caller]:
                reader.end("revoked")

    def end_all(self, reason: ResetReason) -> None:
        """End all streams."""
        for reader in self._all():
            reader.end(reason)

    def _all(self) -> list[EventReader]:
        return [reader for readers in self._readers.values() for reader in readers]

    async def _run(self, started: asyncio.Future[Tail]) -> None:
        tail = Tail(self._store)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._read(tail, started), name="holdfast event streams read")
                group.create_task(self._tick_periodically(tail), name="holdfast event streams tick")
                group.create_task(self._stop(), name="holdfast event streams stop")
        finally:
            started.cancel()
            tail.close()

    async def _read(self, tail: Tail, started: asyncio.Future[Tail]) -> None:
        failures = 0
        while True:
            try:
                if not started.done():
                    await tail.begin()
                    started.set_result(tail)
                for entry in await tail.read_new():
                    self.publish(entry, tail.low_water)
                    tail.mark_seen(entry)
                tail.expire_gaps()
                await self.refresh_watched(tail.low_water)
                await tail.wait()
                failures = 0
            except HoldfastError:  # the database is unavailable: readers stay connected and catch up later
                failures += 1
                await asyncio.sleep(failure_delay(failures, 0.2))

    async def _tick_periodically(self, tail: Tail) -> None:
        while True:
            await asyncio.sleep(_TICK_INTERVAL_S)
            self.tick(tail.low_water)
            now = self._monotonic()
            if now - self._checked >= RECHECK_INTERVAL_S:
                self._checked = now
                with contextlib.suppress(HoldfastError):  # the database is unavailable: checked again in a second
                    await self.check_keys()

    async def _stop(self) -> None:
        await self._stopping.wait()
        self.end_all("stopping")
