"""Event stream of one client: a bounded buffer, and counts instead of events at high rates.

The tenant filter is applied when an event enters the buffer, and checked again when it is written.
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
from holdfast.wire.events import (
    JobsCount,
    JobsEvent,
    ResetEvent,
    ResetReason,
    job_event,
    render_event,
    status_name,
    worker_event,
)

HEARTBEAT_INTERVAL_S = 15.0
MAX_LIFETIME_S = 3_600.0

MAX_BUFFERED_EVENTS = 256
"""Maximum number of unsent events; the stream of a slower client is ended."""

MAX_EVENTS_PER_S = 50
"""Above this rate, changes are counted and the counts are sent once a second."""

_MAX_COUNTS = 100
_MAX_CHUNK_BYTES = 32_768

ChangeGroup = tuple[str, str, str, int]
"""Tenant, queue, type and status code of changes that are counted together."""


class EventSource(Protocol):
    """Source of a reader's events."""

    async def tail(self) -> Tail:
        """Return the shared tail, once it has started."""

    async def missed(self, last: int, upto: int) -> list[ChangeEntry] | Literal["expired", "behind"]:
        """Return the rows after `last` up to `upto`, or the reason why they cannot be replayed."""

    async def current(self, ids: Collection[JobId]) -> dict[JobId, JobChange]:
        """Return the current state of those jobs that still exist."""

    def leave(self, reader: "EventReader") -> None:
        """Remove a reader whose stream has ended."""


class EventFilter(NamedTuple):
    """Filter of a stream; a field that is None matches everything."""

    tenant: str | None = None
    """Tenant of the events; None only for administrators."""
    queue: str | None = None
    type: str | None = None
    job: str | None = None

    def matches_group(self, tenant: str, queue: str, job_type: str) -> bool:
        """Return whether jobs of this kind match; a change without a tenant matches no filter."""
        return (
            bool(tenant)
            and self.tenant in (None, tenant)
            and self.queue in (None, queue)
            and self.type in (None, job_type)
        )

    def matches(self, change: JobChange) -> bool:
        """Return whether this change matches."""
        return self.matches_group(change.tenant, change.queue, change.type) and self.job in (None, str(change.id))


class BufferedEvent(NamedTuple):
    """Rendered event that waits to be sent."""

    tenant: str | None
    """Tenant that may see it; None for administrators only."""
    low_water: int
    """Id to resume after."""
    text: bytes


class EventReader:
    """Event stream of one client, iterated chunk by chunk; `aclose` must always be called."""

    def __init__(
        self,
        streams: EventSource,
        caller: Caller,
        event_filter: EventFilter,
        last: int | None,
        now: float,
        *,
        job: JobChange | None = None,
    ) -> None:
        self.caller = caller
        self.filter = event_filter
        self.job = job
        """State of the watched job that was last sent, if the stream watches one job."""
        self._unlisted: ChangeEntry | None = None
        """Newest row that may have changed the watched job without listing it."""
        self._refreshed: JobChange | None = None
        """State of the watched job that a refresh sent; a later row may list it again."""
        self.cut: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Future that is done when the stream must end, even in the middle of a chunk."""
        self._streams = streams
        self._last = last
        self._started = False
        self._buffer: deque[BufferedEvent] = deque()
        self._wake = asyncio.Event()
        self._end_reason: ResetReason | None = None
        self._finished = False
        self._opened_at = now
        self._next_heartbeat = now + HEARTBEAT_INTERVAL_S
        self._second_start = now
        self._sent = 0
        self._counted: Counter[ChangeGroup] = Counter()
        self._resume_id: int | None = None
        """Id to resume after while counts or a refresh are pending, so nothing is lost."""

    def __aiter__(self) -> "EventReader":
        return self

    async def __anext__(self) -> bytes:
        if not self._started:
            self._started = True
            return await self._first_chunk()
        while not self._finished:
            if self._buffer:
                return self._next_chunk()
            if self._end_reason is not None:
                self._finished = True
                return render_event("reset", ResetEvent(self._end_reason))
            self._wake.clear()
            await self._wake.wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """End the stream and remove it from the node's streams."""
        self._finished = True
        self._wake.set()
        self._streams.leave(self)

    @property
    def is_stale(self) -> bool:
        """True if the watched job may be among changes that the log only counts."""
        return self._unlisted is not None

    def refresh(self, current: JobChange | None, low_water: int, now: float) -> None:
        """Send the current state of the watched job if it changed; None if it no longer exists."""
        unlisted, self._unlisted = self._unlisted, None
        if unlisted is None or self.job is None:
            return
        if not self._counted:
            self._resume_id = None
        change = current or replace(self.job, status=DELETED)
        if change != self.job:
            self.job = self._refreshed = change
            self._may_send(now)
            self._put(BufferedEvent(change.tenant, self._id(low_water), job_event(change, unlisted.at)))

    def add_entry(self, entry: ChangeEntry, low_water: int, texts: dict[int, bytes], now: float) -> None:
        """Buffer the matching changes of a row; `texts` caches rendered changes for all readers."""
        for index, change in enumerate(entry.body.listed()):
            if not self.filter.matches(change) or self._already_sent(change):
                continue
            if self._may_send(now):
                text = texts.get(index)
                if text is None:
                    text = texts[index] = job_event(change, entry.at)
                self._put(BufferedEvent(change.tenant, self._id(low_water), text))
            else:
                self._count((change.tenant, change.queue, change.type, change.status), 1, low_water)
        has_counts = False
        for group in entry.body.unlisted():
            if not self.filter.matches_group(group.tenant, group.queue, group.type):
                continue
            if self.job is not None:  # it may be among them: refresh it
                self._unlisted = entry
                self._keep_resume_id(low_water)
                break
            self._count((group.tenant, group.queue, group.type, group.status), group.jobs, low_water)
            has_counts = True
        if has_counts and self._may_send(now):
            self._send_counts(low_water)
        if entry.body.w and self.caller.is_admin and self.filter == EventFilter(self.filter.tenant):
            for worker in entry.body.w:
                self._put(BufferedEvent(None, self._id(low_water), worker_event(worker, entry.at)))

    def tick(self, now: float, low_water: int) -> None:
        """Send pending counts and heartbeats; called every second."""
        if self._counted:
            self._send_counts(low_water)
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_INTERVAL_S
            if not self._buffer:
                self._put(BufferedEvent(None, self._id(low_water), b": beat\n\n"))
        if now - self._opened_at >= MAX_LIFETIME_S:
            self.end("old")

    def end(self, reason: ResetReason) -> None:
        """End the stream with a `reset` event that gives the reason."""
        if self._end_reason is None:
            self._end_reason = reason
            if not self.cut.done():
                self.cut.set_result(None)
        self._wake.set()

    async def _first_chunk(self) -> bytes:
        """Return the head of the stream and, after a reconnect, the missed events."""
        tail = await self._streams.tail()
        head = b"retry: 2000\n"
        if self._last is None:
            return head + b"id: %d\n\n" % tail.low_water
        missed = await self._streams.missed(self._last, tail.upto)
        if isinstance(missed, str):
            return head + b"id: %d\n" % tail.low_water + render_event("reset", ResetEvent(missed))
        # All missed events carry the old id, so that a client which receives only some of them gets them again.
        events = self._replay(missed, self._last)
        if self.job is not None and any(self._may_be_in(entry) for entry in missed):
            current = (await self._streams.current([self.job.id])).get(self.job.id)
            self.job = current or replace(self.job, status=DELETED)
            events.append(BufferedEvent(self.job.tenant, self._last, job_event(self.job, missed[-1].at)))
        return head + b"\n" + b"".join([_with_id(event) for event in events if self._may_see(event)])

    def _replay(self, missed: list[ChangeEntry], last: int) -> list[BufferedEvent]:
        changes = [
            (change, entry.at) for entry in missed for change in entry.body.listed() if self.filter.matches(change)
        ]
        counted: Counter[ChangeGroup] = Counter()
        if len(changes) > MAX_BUFFERED_EVENTS:
            counted.update([(change.tenant, change.queue, change.type, change.status) for change, _ in changes])
            changes = []
        for entry in missed if self.job is None else ():
            for group in entry.body.unlisted():
                if self.filter.matches_group(group.tenant, group.queue, group.type):
                    counted[group.tenant, group.queue, group.type, group.status] += group.jobs
        events = [BufferedEvent(change.tenant, last, job_event(change, at)) for change, at in changes]
        return [*events, *_count_events(counted, last)]

    def _may_be_in(self, entry: ChangeEntry) -> bool:
        """Return whether the watched job may be among those that a row only counts."""
        return any(self.filter.matches_group(group.tenant, group.queue, group.type) for group in entry.body.unlisted())

    def _already_sent(self, change: JobChange) -> bool:
        """Record the state of the watched job; return whether a refresh already sent it."""
        refreshed, self._refreshed = self._refreshed, None
        if self.job is not None:
            self.job = change
        return change == refreshed

    def _may_send(self, now: float) -> bool:
        if now - self._second_start >= 1:
            self._second_start, self._sent = now, 0
        self._sent += 1
        return self._sent <= MAX_EVENTS_PER_S

    def _count(self, kind: ChangeGroup, jobs: int, low_water: int) -> None:
        self._keep_resume_id(low_water)
        self._counted[kind] += jobs

    def _keep_resume_id(self, low_water: int) -> None:
        if self._resume_id is None:
            self._resume_id = low_water

    def _send_counts(self, low_water: int) -> None:
        for event in _count_events(self._counted, self._id(low_water)):
            self._put(event)
        self._counted.clear()
        if self._unlisted is None:
            self._resume_id = None

    def _id(self, low_water: int) -> int:
        return low_water if self._resume_id is None else min(self._resume_id, low_water)

    def _put(self, event: BufferedEvent) -> None:
        if self._end_reason is not None:
            return
        if len(self._buffer) >= MAX_BUFFERED_EVENTS:
            self._buffer.clear()  # the client must start over, so the unsent events are useless
            self.end("slow")
            return
        self._buffer.append(event)
        self._wake.set()

    def _next_chunk(self) -> bytes:
        chunks, size = [], 0
        while self._buffer and size < _MAX_CHUNK_BYTES:
            event = self._buffer.popleft()
            if self._may_see(event):
                chunks.append(_with_id(event))
                size += len(chunks[-1])
        return b"".join(chunks) or b": \n\n"

    def _may_see(self, event: BufferedEvent) -> bool:
        """Check once more, right before sending, that the caller may see an event."""
        if event.tenant is None:
            return self.caller.is_admin or event.text.startswith(b":")
        return self.caller.is_admin or event.tenant == self.caller.tenant


def _with_id(event: BufferedEvent) -> bytes:
    return b"id: %d\n%b" % (event.low_water, event.text)


def _count_events(counted: Counter[ChangeGroup], low_water: int) -> Iterable[BufferedEvent]:
    """Render counts per tenant; if there are many, sums over all tenants for administrators."""
    if not counted:
        return
    tenants = {tenant for tenant, *_ in counted}
    if len(tenants) > 1 and len(counted) > _MAX_COUNTS:
        totals: Counter[tuple[str, str, int]] = Counter()
        for (_, queue, job_type, status), jobs in counted.items():
            totals[queue, job_type, status] += jobs
        counts = ((None, *kind, jobs) for kind, jobs in totals.most_common(_MAX_COUNTS))
        yield BufferedEvent(None, low_water, _render_counts(counts))
        return
    for tenant in sorted(tenants):
        of_tenant = ((*kind, jobs) for kind, jobs in counted.items() if kind[0] == tenant)
        yield BufferedEvent(tenant, low_water, _render_counts(of_tenant))


def _render_counts(counts: Iterable[tuple[str | None, str, str, int, int]]) -> bytes:
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
    """Return the state of a job as a row of the change log describes it."""
    return JobChange(job.id, job.tenant, job.queue, job.type, job.status.code, job.attempts, job.fence)


def low_water_of(text: str | None) -> int | None:
    """Parse a `Last-Event-ID`; -1, from which no stream can resume, if it is not an id of ours."""
    if text is None or text == "":
        return None
    return int(text) if text.isdecimal() and len(text) <= 19 else -1
