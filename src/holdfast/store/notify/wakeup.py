"""Wake-ups within one process, and polling with back-off for those of other processes."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from holdfast.model.lane import Lane, LaneReady
from holdfast.store.port.wakeups import Subscription

MIN_POLL_INTERVAL_S = 0.02
"""Interval until the first poll after work ran out; each poll without a result doubles it."""

MAX_PENDING_LANES = 1_000
"""Maximum number of lanes kept between two waits; beyond it the subscriber scans all lanes."""

ALL_QUEUES = "*"
"""Name under which subscriptions to all queues are listed. No queue has it."""

Probe = Callable[[], Awaitable[bool]]
"""Function that checks whether another process changed something since its last call."""


class Announce(Protocol):
    """Function that notifies other processes soon, without waiting."""

    def __call__(self, ready_lanes: Iterable[LaneReady], *, changed: bool) -> None:
        """Announce lanes with ready jobs, or that jobs changed."""


async def always() -> bool:
    """Return True: a probe for databases that give no sign of changes."""
    return True


class Hub:
    """Delivers wake-ups to the subscriptions of this process."""

    def __init__(self, *, probe: Probe | None, max_poll_interval_s: float) -> None:
        self.probe = probe
        """Poll function; None while the database pushes wake-ups of other processes."""
        self.max_poll_interval_s = max_poll_interval_s
        self.pushed = False
        """True while a bus pushes wake-ups, so that polling is not needed."""
        self.names_lanes = True
        """True if announcements name lanes; otherwise they only say that jobs changed."""
        self.announce: Announce | None = None
        """Notifies other processes of commits of this one."""
        self._listeners: dict[str, set[LocalSubscription]] = defaultdict(set)

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


class LocalSubscription(Subscription):
    """Subscription to a hub."""

    def __init__(self, hub: Hub, queues: frozenset[str]) -> None:
        self.queues = queues
        self._hub = hub
        self._event = asyncio.Event()
        self._ready_lanes: dict[Lane, int] = {}
        self._unknown = False
        self._interval = MIN_POLL_INTERVAL_S
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

    async def wait(self, timeout: float) -> list[LaneReady] | None:
        if self._closed:
            raise RuntimeError("this subscription is closed")
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        # Several tasks may wait on one subscription: a task that finds nothing left waits again.
        while not (self._ready_lanes or self._unknown or self._closed):
            left = until - loop.time()
            if left <= 0:
                return None
            probe = None if self._hub.pushed else self._hub.probe
            delay = left if probe is None else min(left, self._interval)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), delay)
                continue
            if probe is not None:
                self._interval = min(2 * self._interval, self._hub.max_poll_interval_s)
                if await probe():
                    return []
        self._event.clear()
        self._interval = MIN_POLL_INTERVAL_S
        ready_lanes = [LaneReady(lane, seq) for lane, seq in self._ready_lanes.items()]
        self._ready_lanes.clear()
        unknown, self._unknown = self._unknown, False
        return [] if unknown else ready_lanes

    def reset(self) -> None:
        self._interval = MIN_POLL_INTERVAL_S

    def close(self) -> None:
        self._closed = True
        self._event.set()
        self._hub.unsubscribe(self)
