"""One reader of a stream: what is of interest to it, in a bounded buffer, counted where it is too much.

Whose events a reader gets is decided when they are put into its buffer, and looked at once more when they are written.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Iterable
from typing import Literal, NamedTuple, Protocol

from msgspec.structs import replace

from holdfast.engine.changes.tail import Tail
from holdfast.model.access import Caller
from holdfast.model.change_log import DELETED, ChangeEntry, JobChange
from holdfast.model.ids import JobId
from holdfast.model.job import Job
from holdfast.wire.events import JobsCount, JobsEvent, ResetEvent, job_event, render_event, status_name, worker_event

HEARTBEAT_INTERVAL_S = 15.0
MAX_LIFETIME_S = 3_600.0

MAX_BUFFERED_EVENTS = 256
"""Events that wait for a reader; one that lets more gather is cut."""

MAX_EVENTS_PER_S = 50
"""Above it, changes are counted, and the counts sent once a second."""

_MAX_COUNTS = 100
_MAX_CHUNK_BYTES = 32_768

Kind = tuple[str, str, str, int]
Reason = Literal["expired", "behind", "slow", "stopping", "revoked", "old"]


class EventSource(Protocol):
    """Where a reader's events come from."""

    async def tail(self) -> Tail:
        """The tail that all read from, once it has begun."""

    async def missed(self, last: int, upto: int) -> list[ChangeEntry] | Literal["expired", "behind"]:
        """Rows that a reader missed who has read up to `last`; or why they cannot be told."""

    async def look(self, ids: Collection[JobId]) -> dict[JobId, JobChange]:
        """Jobs as they are, those that are still there."""

    def leave(self, reader: "EventReader") -> None:
        """A stream is over."""


class EventFilter(NamedTuple):
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

    def names(self, change: JobChange) -> bool:
        """Whether this change is."""
        return self.counts(change.tenant, change.queue, change.type) and self.job in (None, str(change.id))


class Item(NamedTuple):
    """Something to be written: whose it is (None: for administrators), the id to resume after, and the event."""

    tenant: str | None
    low_water: int
    text: bytes


class EventReader:
    """One stream: what is asked of it chunk by chunk. Ends by itself, or by `aclose`, which must be called."""

    def __init__(
        self,
        streams: EventSource,
        caller: Caller,
        wanted: EventFilter,
        last: int | None,
        now: float,
        *,
        job: JobChange | None = None,
    ) -> None:
        self.caller = caller
        self.wanted = wanted
        self.job = job
        """If one is watched alone: as it was when the stream was asked for, or as was last told of it."""
        self._doubt: ChangeEntry | None = None
        """The newest row that may have moved it without naming it."""
        self._found: JobChange | None = None
        """How it was when it was looked up, as was told then: the row that names this change may be yet to come."""
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
        self._next_beat = now + HEARTBEAT_INTERVAL_S
        self._second = now
        self._sent = 0
        self._counted: Counter[Kind] = Counter()
        self._held: int | None = None
        """While counts wait to be sent, or a job to be looked up: the id to resume after, so that nothing is lost."""

    def __aiter__(self) -> "EventReader":
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
                return render_event("reset", ResetEvent(self._ended))
            self._wake.clear()
            await self._wake.wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """It is over: make room for another."""
        self._over = True
        self._wake.set()
        self._streams.leave(self)

    @property
    def unsure(self) -> bool:
        """Whether the job that is watched may have moved among many that were only counted."""
        return self._doubt is not None

    def learn(self, found: JobChange | None, low_water: int, now: float) -> None:
        """The job that is watched, as it is after it may have moved; None if it is not there any more."""
        doubt, self._doubt = self._doubt, None
        if doubt is None or self.job is None:
            return
        if not self._counted:
            self._held = None
        change = found or replace(self.job, status=DELETED)
        if change != self.job:
            self.job = self._found = change
            self._may_send(now)
            self._put(Item(change.tenant, self._id(low_water), job_event(change, doubt.at)))

    def take(self, entry: ChangeEntry, low_water: int, texts: dict[int, bytes], now: float) -> None:
        """Put what is of interest into the buffer. `texts`: changes as they are written, made once for all readers."""
        for index, change in enumerate(entry.body.listed()):
            if not self.wanted.names(change) or self._knew(change):
                continue
            if self._may_send(now):
                text = texts.get(index)
                if text is None:
                    text = texts[index] = job_event(change, entry.at)
                self._put(Item(change.tenant, self._id(low_water), text))
            else:
                self._count((change.tenant, change.queue, change.type, change.status), 1, low_water)
        counted = False
        for group in entry.body.unlisted():
            if not self.wanted.counts(group.tenant, group.queue, group.type):
                continue
            if self.job is not None:  # perhaps it is among them: that is looked up
                self._doubt = entry
                self._hold(low_water)
                break
            self._count((group.tenant, group.queue, group.type, group.status), group.jobs, low_water)
            counted = True
        if counted and self._may_send(now):
            self._send_counts(low_water)
        if entry.body.w and self.caller.is_admin and self.wanted == EventFilter(self.wanted.tenant):
            for worker in entry.body.w:
                self._put(Item(None, self._id(low_water), worker_event(worker, entry.at)))

    def tick(self, now: float, low_water: int) -> None:
        """A second has passed."""
        if self._counted:
            self._send_counts(low_water)
        if now >= self._next_beat:
            self._next_beat = now + HEARTBEAT_INTERVAL_S
            if not self._buffer:
                self._put(Item(None, self._id(low_water), b": beat\n\n"))
        if now - self._born >= MAX_LIFETIME_S:
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
            return head + b"id: %d\n" % tail.low_water + render_event("reset", ResetEvent(missed))
        # Nothing of it is acknowledged before all of it was sent.
        items = self._again(missed, self._last)
        if self.job is not None and any(self._may_be_in(entry) for entry in missed):
            found = (await self._streams.look([self.job.id])).get(self.job.id)
            self.job = found or replace(self.job, status=DELETED)
            items.append(Item(self.job.tenant, self._last, job_event(self.job, missed[-1].at)))
        return head + b"\n" + b"".join([_line(item) for item in items if self._mine(item)])

    def _again(self, missed: list[ChangeEntry], last: int) -> list[Item]:
        changes = [(c, e.at) for e in missed for c in e.body.listed() if self.wanted.names(c)]
        counted: Counter[Kind] = Counter()
        if len(changes) > MAX_BUFFERED_EVENTS:
            counted.update([(c.tenant, c.queue, c.type, c.status) for c, _ in changes])
            changes = []
        for entry in missed if self.job is None else ():
            for group in entry.body.unlisted():
                if self.wanted.counts(group.tenant, group.queue, group.type):
                    counted[group.tenant, group.queue, group.type, group.status] += group.jobs
        items = [Item(change.tenant, last, job_event(change, at)) for change, at in changes]
        return [*items, *_counts(counted, last)]

    def _may_be_in(self, entry: ChangeEntry) -> bool:
        """Whether the job that is watched may be among those that a row only counts."""
        return any(self.wanted.counts(each.tenant, each.queue, each.type) for each in entry.body.unlisted())

    def _knew(self, change: JobChange) -> bool:
        """Whether a look at the job that is watched told of this before its row came; it is now as the row says."""
        found, self._found = self._found, None
        if self.job is not None:
            self.job = change
        return change == found

    def _may_send(self, now: float) -> bool:
        if now - self._second >= 1:
            self._second, self._sent = now, 0
        self._sent += 1
        return self._sent <= MAX_EVENTS_PER_S

    def _count(self, kind: Kind, jobs: int, low_water: int) -> None:
        self._hold(low_water)
        self._counted[kind] += jobs

    def _hold(self, low_water: int) -> None:
        if self._held is None:
            self._held = low_water

    def _send_counts(self, low_water: int) -> None:
        for item in _counts(self._counted, self._id(low_water)):
            self._put(item)
        self._counted.clear()
        if self._doubt is None:
            self._held = None

    def _id(self, low_water: int) -> int:
        return low_water if self._held is None else min(self._held, low_water)

    def _put(self, item: Item) -> None:
        if self._ended is not None:
            return
        if len(self._buffer) >= MAX_BUFFERED_EVENTS:
            self._buffer.clear()  # it is told to begin anew: what it did not read is of no use
            self.end("slow")
            return
        self._buffer.append(item)
        self._wake.set()

    def _drained(self) -> bytes:
        chunks, size = [], 0
        while self._buffer and size < _MAX_CHUNK_BYTES:
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


def _line(item: Item) -> bytes:
    return b"id: %d\n%b" % (item.low_water, item.text)


def _counts(counted: Counter[Kind], low_water: int) -> Iterable[Item]:
    """Counts, for each tenant apart; where there are many, those of all tenants together."""
    if not counted:
        return
    tenants = {tenant for tenant, *_ in counted}
    if len(tenants) > 1 and len(counted) > _MAX_COUNTS:
        together: Counter[tuple[str, str, int]] = Counter()
        for (_, queue, job_type, status), jobs in counted.items():
            together[queue, job_type, status] += jobs
        yield Item(None, low_water, _jobs((None, *kind, jobs) for kind, jobs in together.most_common(_MAX_COUNTS)))
        return
    for tenant in sorted(tenants):
        here = ((*kind, jobs) for kind, jobs in counted.items() if kind[0] == tenant)
        yield Item(tenant, low_water, _jobs(here))


def _jobs(counts: Iterable[tuple[str | None, str, str, int, int]]) -> bytes:
    return render_event(
        "jobs",
        JobsEvent(
            [
                JobsCount(tenant, queue, job_type, status_name(status), jobs)
                for tenant, queue, job_type, status, jobs in counts
            ]
        ),
    )


def change_of(job: Job) -> JobChange:
    """A job as a row of the feed would tell of it."""
    return JobChange(job.id, job.tenant, job.queue, job.type, job.status.code, job.attempts, job.fence)


def low_water_of(text: str | None) -> int | None:
    """What a reader sends as Last-Event-ID; one that no stream gave is none that is kept."""
    if text is None or text == "":
        return None
    return int(text) if text.isdecimal() and len(text) <= 19 else -1
