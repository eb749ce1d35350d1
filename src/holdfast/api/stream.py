"""Streams of events: one tail of the feed for each node, and a bounded buffer for each reader.

Whose events a reader gets is decided when they are put into its buffer, and looked at once more when they are written.
"""

import asyncio
import contextlib
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, Protocol

from holdfast.engine.feed import Tail
from holdfast.engine.loops import pause_after
from holdfast.errors import HoldfastError, TooMany
from holdfast.model.access import Caller
from holdfast.model.feed import Change, Entry
from holdfast.model.state import STATUS_OF_CODE
from holdfast.store.port import Store
from holdfast.wire.events import JobsCount, JobsEvent, ResetEvent, job_event, worker_event, written

HEARTBEAT = 15.0
LONGEST_LIFE = 3_600.0
STILL_GOOD_EVERY = 10.0
"""Seconds between two looks whether a reader's key was revoked."""

BUFFER = 256
"""Events that wait for a reader; one that lets more gather is cut."""

MOST_EACH_SECOND = 50
"""Above it, changes are counted, and the counts sent once a second."""

PER_KEY, PER_TENANT, PER_NODE = 5, 50, 1_000

_MOST_MISSED = 5_000
"""Rows that are read for a reader who comes back; one who missed more begins anew."""

_MOST_COUNTS = 100
_AT_ONCE = 32_768
_TICK = 1.0
_RETRY_AFTER = 5.0

Kind = tuple[str, str, str, int]
Reason = Literal["expired", "behind", "slow", "stopping", "revoked", "old"]


class StillGood(Protocol):
    """Knows whether what a caller came with would still be accepted."""

    async def still_good(self, caller: Caller) -> bool:
        """Whether it would."""


class Wanted(NamedTuple):
    """Which events a reader asked for; a field that is None matches all."""

    tenant: str | None = None
    """None only for administrators."""
    queue: str | None = None
    type: str | None = None
    job: str | None = None

    def counts(self, tenant: str, queue: str, job_type: str) -> bool:
        """Whether jobs of this kind are of interest. An event without a tenant is nobody's."""
        return (
            bool(tenant)
            and self.tenant in (None, tenant)
            and self.queue in (None, queue)
            and self.type in (None, job_type)
        )

    def names(self, change: Change) -> bool:
        """Whether this change is."""
        return self.counts(change.tenant, change.queue, change.type) and self.job in (None, str(change.id))


class Item(NamedTuple):
    """Something to be written: whose it is (None: for administrators), the id to resume after, and the event."""

    tenant: str | None
    low_water: int
    text: bytes


class Reader:
    """One stream: what is asked of it chunk by chunk. Ends by itself, or by `aclose`, which must be called."""

    def __init__(self, streams: "Streams", caller: Caller, wanted: Wanted, last: int | None, now: float) -> None:
        self.caller = caller
        self.wanted = wanted
        self.cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when it must end, also in the middle of a chunk."""
        self._streams = streams
        self._last = last
        self._begun = False
        self._buffer: deque[Item] = deque()
        self._wake = asyncio.Event()
        self._ended: Reason | None = None
        self._over = False
        self._born = now
        self._next_beat = now + HEARTBEAT
        self._second = now
        self._sent = 0
        self._counted: Counter[Kind] = Counter()
        self._held: int | None = None
        """While counts wait to be sent: the id to resume after, so that none is lost."""

    def __aiter__(self) -> "Reader":
        return self

    async def __anext__(self) -> bytes:
        if not self._begun:
            self._begun = True
            return await self._first()
        while not self._over:
            if self._buffer:
                return self._drained()
            if self._ended is not None:
                self._over = True
                return written("reset", ResetEvent(self._ended))
            self._wake.clear()
            await self._wake.wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """It is over: make room for another."""
        self._over = True
        self._wake.set()
        self._streams.leave(self)

    def take(self, entry: Entry, low_water: int, texts: dict[int, bytes], now: float) -> None:
        """Put what is of interest into the buffer. `texts`: changes as they are written, made once for all readers."""
        for index, change in enumerate(entry.body.c):
            if not self.wanted.names(change):
                continue
            if self._may_send(now):
                text = texts.get(index)
                if text is None:
                    text = texts[index] = job_event(change, entry.at)
                self._put(Item(change.tenant, self._id(low_water), text))
            else:
                self._count((change.tenant, change.queue, change.type, change.status), 1, low_water)
        if not entry.body.c:
            for group in entry.body.g:
                if self.wanted.counts(group.tenant, group.queue, group.type):
                    self._count((group.tenant, group.queue, group.type, group.status), group.jobs, low_water)
            if self._counted and self.wanted.job is None and self._may_send(now):
                self._send_counts(low_water)
        if entry.body.w and self.caller.is_admin and self.wanted == Wanted(self.wanted.tenant):
            for worker in entry.body.w:
                self._put(Item(None, self._id(low_water), worker_event(worker, entry.at)))

    def tick(self, now: float, low_water: int) -> None:
        """A second has passed."""
        if self._counted:
            self._send_counts(low_water)
        if now >= self._next_beat:
            self._next_beat = now + HEARTBEAT
            if not self._buffer:
                self._put(Item(None, self._id(low_water), b": beat\n\n"))
        if now - self._born >= LONGEST_LIFE:
            self.end("old")

    def end(self, reason: Reason) -> None:
        """Say why, and end."""
        if self._ended is None:
            self._ended = reason
            if not self.cut.done():
                self.cut.set_result(None)
        self._wake.set()

    async def _first(self) -> bytes:
        """The head of the stream, and what a reader missed who was here before."""
        tail = await self._streams.tail()
        head = b"retry: 2000\n"
        if self._last is None:
            return head + b"id: %d\n\n" % tail.low_water
        missed = await self._streams.missed(self._last, tail.upto)
        if isinstance(missed, str):
            return head + b"id: %d\n" % tail.low_water + written("reset", ResetEvent(missed))
        # Nothing of it is acknowledged before all of it was sent.
        items = self._again(missed, self._last)
        return head + b"\n" + b"".join([_line(item) for item in items if self._mine(item)])

    def _again(self, missed: list[Entry], last: int) -> list[Item]:
        changes = [(c, e.at) for e in missed for c in e.body.c if self.wanted.names(c)]
        counted: Counter[Kind] = Counter()
        if len(changes) > BUFFER:
            counted.update([(c.tenant, c.queue, c.type, c.status) for c, _ in changes])
            changes = []
        for entry in missed:
            for group in entry.body.g if not entry.body.c else ():
                if self.wanted.counts(group.tenant, group.queue, group.type):
                    counted[group.tenant, group.queue, group.type, group.status] += group.jobs
        items = [Item(change.tenant, last, job_event(change, at)) for change, at in changes]
        return [*items, *_counts(counted, last)]

    def _may_send(self, now: float) -> bool:
        if now - self._second >= 1:
            self._second, self._sent = now, 0
        self._sent += 1
        return self._sent <= MOST_EACH_SECOND

    def _count(self, kind: Kind, jobs: int, low_water: int) -> None:
        if self._held is None:
            self._held = low_water
        self._counted[kind] += jobs

    def _send_counts(self, low_water: int) -> None:
        for item in _counts(self._counted, self._id(low_water)):
            self._put(item)
        self._counted.clear()
        self._held = None

    def _id(self, low_water: int) -> int:
        return low_water if self._held is None else min(self._held, low_water)

    def _put(self, item: Item) -> None:
        if self._ended is not None:
            return
        if len(self._buffer) >= BUFFER:
            self._buffer.clear()  # it is told to begin anew: what it did not read is of no use
            self.end("slow")
            return
        self._buffer.append(item)
        self._wake.set()

    def _drained(self) -> bytes:
        chunks, size = [], 0
        while self._buffer and size < _AT_ONCE:
            item = self._buffer.popleft()
            if self._mine(item):
                chunks.append(_line(item))
                size += len(chunks[-1])
        return b"".join(chunks) or b": \n\n"

    def _mine(self, item: Item) -> bool:
        """Once more, at the last moment: whose event is it, and whose stream."""
        if item.tenant is None:
            return self.caller.is_admin or item.text.startswith(b":")
        return self.caller.is_admin or item.tenant == self.caller.tenant


class Streams:
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
        self._readers: dict[str | None, set[Reader]] = defaultdict(set)
        """By the tenant they see; None is all."""
        self._count = 0
        self._by_key: Counter[str] = Counter()
        self._by_tenant: Counter[str] = Counter()
        self._running: asyncio.Task[None] | None = None
        self._begun: asyncio.Future[Tail] | None = None
        self._checked = 0.0

    def __len__(self) -> int:
        return self._count

    def open(self, caller: Caller, wanted: Wanted, last: int | None) -> Reader:
        """A stream for a caller who may see what is wanted; `TooMany` when there are enough."""
        key = caller.key or caller.name
        for have, most, whose in (
            (self._by_key[key], PER_KEY, "with this key"),
            (self._by_tenant[caller.tenant], PER_TENANT, "of this tenant"),
            (self._count, PER_NODE, "on this node"),
        ):
            if have >= most:
                raise TooMany(f"{most} streams {whose} are open already: close one first", retry_after=_RETRY_AFTER)
        reader = Reader(self, caller, wanted, last, self._monotonic())
        self._readers[wanted.tenant].add(reader)
        self._count += 1
        self._by_key[key] += 1
        self._by_tenant[caller.tenant] += 1
        if self._running is None:
            self._begun = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._run(self._begun))
        return reader

    def leave(self, reader: Reader) -> None:
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

    async def missed(self, last: int, upto: int) -> list[Entry] | Literal["expired", "behind"]:
        """Rows that a reader missed who has read up to `last`; or why they cannot be told."""
        kept = await self._store.single(lambda tx: tx.feed_kept())
        if last < kept.pruned or last > max(kept.last, upto):
            return "expired"
        if upto - last > _MOST_MISSED:
            return "behind"
        found: list[Entry] = []
        while last < upto:
            rows = await self._store.single(lambda tx, after=last: tx.feed_after(after, 500))  # type: ignore[misc]
            if not rows:
                break
            found += [entry for entry in rows if entry.seq <= upto]
            last = rows[-1].seq
        return found

    def publish(self, entry: Entry, low_water: int) -> None:
        """Hand a row to those who may see something of it."""
        now = self._monotonic()
        texts: dict[int, bytes] = {}
        tenants = {change.tenant for change in entry.body.c} | {group.tenant for group in entry.body.g}
        for tenant in (None, *tenants):
            for reader in self._readers.get(tenant, ()):
                reader.take(entry, low_water, texts, now)

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

    def _all(self) -> list[Reader]:
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
                    tail.note(entry)
                tail.give_up()
                await tail.wait()
                failures = 0
            except HoldfastError:  # the database is away: readers stay, and hear of it all when it is back
                failures += 1
                await asyncio.sleep(pause_after(failures, 0.2))

    async def _keep_time(self, tail: Tail) -> None:
        while True:
            await asyncio.sleep(_TICK)
            self.tick(tail.low_water)
            now = self._monotonic()
            if now - self._checked >= STILL_GOOD_EVERY:
                self._checked = now
                with contextlib.suppress(HoldfastError):  # the database is away: asked again in a second
                    await self.check_keys()

    async def _stop(self) -> None:
        await self._stopping.wait()
        self.end_all("stopping")


def _line(item: Item) -> bytes:
    return b"id: %d\n%b" % (item.low_water, item.text)


def _counts(counted: Counter[Kind], low_water: int) -> Iterable[Item]:
    """Counts, for each tenant apart; where there are many, those of all tenants together."""
    if not counted:
        return
    tenants = {tenant for tenant, *_ in counted}
    if len(tenants) > 1 and len(counted) > _MOST_COUNTS:
        together: Counter[tuple[str, str, int]] = Counter()
        for (_, queue, job_type, status), jobs in counted.items():
            together[queue, job_type, status] += jobs
        yield Item(None, low_water, _jobs((None, *kind, jobs) for kind, jobs in together.most_common(_MOST_COUNTS)))
        return
    for tenant in sorted(tenants):
        here = ((*kind, jobs) for kind, jobs in counted.items() if kind[0] == tenant)
        yield Item(tenant, low_water, _jobs(here))


def _jobs(counts: Iterable[tuple[str | None, str, str, int, int]]) -> bytes:
    return written(
        "jobs",
        JobsEvent(
            [
                JobsCount(tenant, queue, job_type, STATUS_OF_CODE[status].value, jobs)
                for tenant, queue, job_type, status, jobs in counts
            ]
        ),
    )


def low_water_of(text: str | None) -> int | None:
    """What a reader sends as Last-Event-ID; one that no stream gave is none that is kept."""
    if text is None or text == "":
        return None
    return int(text) if text.isdecimal() and len(text) <= 19 else -1
