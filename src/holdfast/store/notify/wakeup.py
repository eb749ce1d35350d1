"""Wake-ups within one process, and polling with back-off for those of other processes."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from holdfast.model.lane import Lane, LaneReady
from holdfast.store.notify.polling import ALL_QUEUES, MIN_POLL_INTERVAL_S, PolledSubscription, Poller, Probe
from holdfast.store.port.wakeups import Subscription

MAX_PENDING_LANES = 1_000
"""Maximum number of lanes kept between two waits; beyond it the subscriber scans all lanes."""


class Announce(Protocol):
    """Function that notifies other processes soon, without waiting."""

    def __call__(self, ready_lanes: Iterable[LaneReady], *, changed: bool) -> None:
        """Announce lanes with ready jobs, or that jobs changed."""


class Hub:
    """Delivers wake-ups to the subscriptions of this process."""

    def __init__(self, *, probe: Probe | None, max_poll_interval_s: float, finds_all: bool = False) -> None:
        """Create a hub without subscriptions.

        Args:
            probe: Poll function; None while the database pushes wake-ups of other processes.
            max_poll_interval_s: Longest time between two polls.
            finds_all: The poll function finds all ready jobs, not only those that became ready since the last call.
        """
        self.poller = Poller(max_poll_interval_s)
        self.poller.probe = probe
        self._finds_all = finds_all
        self.pushed = False
        """True while a bus pushes wake-ups, so that polling is not needed."""
        self.names_lanes = True
        """True if announcements name lanes; otherwise they only say that jobs changed."""
        self.announce: Announce | None = None
        """Notifies other processes of commits of this one."""
        self._listeners: dict[str, set[LocalSubscription]] = defaultdict(set)

    @property
    def probe(self) -> Probe | None:
        """Poll function; None while the database pushes wake-ups of other processes."""
        return self.poller.probe

    @probe.setter
    def probe(self, probe: Probe | None) -> None:
        self.poller.probe = probe

    @property
    def polls(self) -> bool:
        """True while subscriptions must poll, because nothing pushes wake-ups."""
        return self.probe is not None and not self.pushed

    @property
    def poll_interval_s(self) -> float | None:
        """Longest time for which a ready job stays unnoticed; None if notifications may be lost."""
        return self.poller.max_interval_s if self.polls and self._finds_all else None

    async def aclose(self) -> None:
        """Stop polling."""
        await self.poller.aclose()

    def listen(self, queues: Sequence[str] | None) -> "LocalSubscription":
        """Subscribe to these queues (None: all)."""
        subscription = LocalSubscription(self, frozenset([ALL_QUEUES] if queues is None else queues))
        for queue in subscription.queues:
            self._listeners[queue].add(subscription)
        return subscription

    def unsubscribe(self, subscription: "LocalSubscription") -> None:
        """Remove a subscription."""
        for queue in subscription.queues:
            self._listeners[queue].discard(subscription)

    def committed(self, ready_lanes: Sequence[LaneReady], *, changed: bool) -> None:
        """Publish a commit of this process: ready jobs, or other changes of jobs."""
        if ready_lanes:
            self.publish(ready_lanes)
        if self.announce is not None and (ready_lanes or changed):
            self.publish_change()
            self.announce(ready_lanes if self.names_lanes else [], changed=True)

    def publish(self, ready_lanes: Iterable[LaneReady]) -> None:
        """Wake the subscriptions of these lanes' queues."""
        lanes = list(ready_lanes)
        if lanes:
            self._wake_all_queues_subscribers()
        for ready in lanes:
            for subscription in self._listeners.get(ready.lane.queue, ()):
                subscription.put(ready)

    def publish_unknown(self, queues: Iterable[str] | None = None) -> None:
        """Wake the subscriptions of these queues (None: all), without knowing the lanes."""
        self._wake_all_queues_subscribers()
        for queue in list(self._listeners) if queues is None else queues:
            for subscription in self._listeners.get(queue, ()):
                subscription.put_unknown()

    def publish_change(self) -> None:
        """Wake the subscriptions to all queues, because jobs changed."""
        self._wake_all_queues_subscribers()

    def _wake_all_queues_subscribers(self) -> None:
        for subscription in self._listeners.get(ALL_QUEUES, ()):
            subscription.put_unknown()


class Bus(Protocol):
    """Carries wake-ups between processes. A lost wake-up only delays work."""

    def join(self, hub: Hub) -> None:
        """Deliver received wake-ups to this hub, and send those of its commits."""


class LocalSubscription(PolledSubscription, Subscription):
    """Subscription to a hub."""

    def __init__(self, hub: Hub, queues: frozenset[str]) -> None:
        super().__init__(queues)
        self._hub = hub
        self._event = asyncio.Event()
        self._ready_lanes: dict[Lane, int] = {}
        self._unknown = False
        self._found = False
        """True if a poll found jobs."""
        self._closed = False

    def put(self, ready: LaneReady) -> None:
        """Keep a lane with ready jobs for the next wait, with its earliest position."""
        known = self._ready_lanes.get(ready.lane)
        if known is None or ready.seq < known:
            self._ready_lanes[ready.lane] = ready.seq
        if len(self._ready_lanes) > MAX_PENDING_LANES:
            self._ready_lanes.clear()
            self._unknown = True
        self._event.set()

    def put_unknown(self) -> None:
        """Keep for the next wait that unknown lanes may have ready jobs."""
        self._unknown = True
        self._event.set()

    def on_found(self) -> None:
        self._found = True
        self._event.set()

    async def wait(self, timeout: float) -> list[LaneReady] | None:
        if self._closed:
            raise RuntimeError("this subscription is closed")
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        # Several tasks may wait on one subscription: a task that finds nothing left waits again.
        while not (self._ready_lanes or self._unknown or self._found or self._closed):
            left = until - loop.time()
            if left <= 0:
                return None
            with self._polled(), contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), left)
        self._event.clear()
        if self._ready_lanes or self._unknown:  # jobs that a poll finds may be blocked, and do not end the back-off
            self.interval = MIN_POLL_INTERVAL_S
        ready_lanes = [LaneReady(lane, seq) for lane, seq in self._ready_lanes.items()]
        self._ready_lanes.clear()
        unknown = self._unknown or self._found
        self._unknown = self._found = False
        return [] if unknown else ready_lanes

    @contextlib.contextmanager
    def _polled(self) -> Iterator[None]:
        """Poll within the block, unless wake-ups are pushed."""
        if not self._hub.polls:
            yield
            return
        self._hub.poller.add(self)
        try:
            yield
        finally:
            self._hub.poller.remove(self)

    @property
    def poll_interval_s(self) -> float | None:
        return self._hub.poll_interval_s

    def reset(self) -> None:
        self.interval = MIN_POLL_INTERVAL_S

    def close(self) -> None:
        self._closed = True
        self._event.set()
        self._hub.unsubscribe(self)
