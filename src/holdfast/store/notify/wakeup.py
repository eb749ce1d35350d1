"""Wake-ups inside one process, and polling with back-off where nothing better tells of other processes."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol

from holdfast.model.lane import Lane, LaneReady

FIRST_POLL = 0.02
"""Seconds until the first look after work ran out; each fruitless look doubles it."""

MOST_NEWS = 1_000
"""How many lanes are remembered between two waits; past that, look at all."""

EVERYWHERE = "*"
"""In the place of a queue: all of them. No queue has this name."""

Probe = Callable[[], Awaitable[bool]]
"""Tells whether another process may have changed something since it was last asked."""


class Others(Protocol):
    """Tells other processes, soon and without waiting."""

    def __call__(self, ready_lanes: Iterable[LaneReady], *, changed: bool) -> None:
        """Jobs became ready, or something else changed."""


async def always() -> bool:
    """Without any sign of change, every look may find something."""
    return True


class Hub:
    """Hands news to the subscriptions of this process."""

    def __init__(self, *, probe: Probe | None, longest_poll: float) -> None:
        self.probe = probe
        """None while news of other processes arrive by themselves."""
        self.longest_poll = longest_poll
        self.pushed = False
        """Meanwhile a bus brings them: nobody needs to ask."""
        self.names_lanes = True
        """Whether others are to be told which jobs became ready, or only that something changed."""
        self.others: Others | None = None
        """Tells other processes what this one committed."""
        self._listeners: dict[str, set[LocalSubscription]] = defaultdict(set)

    def listen(self, queues: Sequence[str] | None) -> "LocalSubscription":
        """A subscription to these queues; None is all."""
        subscription = LocalSubscription(self, frozenset([EVERYWHERE] if queues is None else queues))
        for queue in subscription.queues:
            self._listeners[queue].add(subscription)
        return subscription

    def leave(self, subscription: "LocalSubscription") -> None:
        """Forget a subscription."""
        for queue in subscription.queues:
            self._listeners[queue].discard(subscription)

    def committed(self, ready_lanes: Sequence[LaneReady], *, changed: bool) -> None:
        """This process committed something: jobs that became ready, or other changes of jobs."""
        if ready_lanes:
            self.publish(ready_lanes)
        if self.others is not None and (ready_lanes or changed):
            self.publish_change()
            self.others(ready_lanes if self.names_lanes else [], changed=True)

    def publish(self, ready_lanes: Iterable[LaneReady]) -> None:
        """Jobs became ready."""
        told = list(ready_lanes)
        if told:
            self._wake_everywhere()
        for item in told:
            for subscription in self._listeners.get(item.lane.queue, ()):
                subscription.put(item)

    def publish_unknown(self, queues: Iterable[str] | None = None) -> None:
        """Something may have become ready in these queues (None: in any), it is not known in which lanes."""
        self._wake_everywhere()
        for queue in list(self._listeners) if queues is None else queues:
            for subscription in self._listeners.get(queue, ()):
                subscription.put_unknown()

    def publish_change(self) -> None:
        """Nothing became ready, but jobs changed: whoever listens to everything looks."""
        self._wake_everywhere()

    def _wake_everywhere(self) -> None:
        for subscription in self._listeners.get(EVERYWHERE, ()):
            subscription.put_unknown()


class Bus(Protocol):
    """Carries wake-ups between processes. What it loses costs time and nothing else."""

    def join(self, hub: Hub) -> None:
        """Hand what is heard to this hub, and send what it commits."""


class LocalSubscription:
    """See `holdfast.store.port.store.Subscription`."""

    def __init__(self, hub: Hub, queues: frozenset[str]) -> None:
        self.queues = queues
        self._hub = hub
        self._event = asyncio.Event()
        self._ready_lanes: dict[Lane, int] = {}
        self._unknown = False
        self._step = FIRST_POLL
        self._closed = False

    def put(self, ready_lanes: LaneReady) -> None:
        """Keep the earliest position of each lane until somebody waits."""
        known = self._ready_lanes.get(ready_lanes.lane)
        if known is None or ready_lanes.seq < known:
            self._ready_lanes[ready_lanes.lane] = ready_lanes.seq
        if len(self._ready_lanes) > MOST_NEWS:
            self._ready_lanes.clear()
            self._unknown = True
        self._event.set()

    def put_unknown(self) -> None:
        """Something changed, somewhere."""
        self._unknown = True
        self._event.set()

    async def wait(self, timeout: float) -> list[LaneReady] | None:
        if self._closed:
            raise RuntimeError("this subscription is closed")
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout
        # Several may wait on one subscription: who comes too late for what was told waits on.
        while not (self._ready_lanes or self._unknown or self._closed):
            left = until - loop.time()
            if left <= 0:
                return None
            probe = None if self._hub.pushed else self._hub.probe
            pause = left if probe is None else min(left, self._step)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._event.wait(), pause)
                continue
            if probe is not None:
                self._step = min(2 * self._step, self._hub.longest_poll)
                if await probe():
                    return []
        self._event.clear()
        self._step = FIRST_POLL
        ready_lanes = [LaneReady(lane, seq) for lane, seq in self._ready_lanes.items()]
        self._ready_lanes.clear()
        unknown, self._unknown = self._unknown, False
        return [] if unknown else ready_lanes

    def reset(self) -> None:
        self._step = FIRST_POLL

    def close(self) -> None:
        self._closed = True
        self._event.set()
        self._hub.leave(self)
