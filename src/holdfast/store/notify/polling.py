"""Polling with back-off: one look at the database for all subscriptions that wait."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence

from holdfast import tasks
from holdfast.errors import HoldfastError

MIN_POLL_INTERVAL_S = 0.02
"""Interval until the first poll after work ran out; each poll without a wake-up doubles it."""

ALL_QUEUES = "*"
"""Name under which subscriptions to all queues are listed. No queue has it."""

Probe = Callable[[frozenset[str]], Awaitable[Collection[str]]]
"""Function that returns those of the given queues in which jobs may be ready."""


def probe_ready(read: Callable[[Sequence[str]], Awaitable[set[str]]]) -> Probe:
    """Return a probe that reads which queues have ready jobs.

    The database gives no sign of other changes, so a subscription to all queues is woken by every poll.
    """

    async def probe(queues: frozenset[str]) -> set[str]:
        named = sorted(queues - {ALL_QUEUES})
        return (await read(named) if named else set()) | (queues & {ALL_QUEUES})

    return probe


class PolledSubscription:
    """Part of a subscription that the poller uses."""

    def __init__(self, queues: frozenset[str]) -> None:
        self.queues = queues
        self.interval = MIN_POLL_INTERVAL_S
        self.due_at = 0.0
        """Time of the next poll, on the clock of the event loop."""

    def on_found(self) -> None:
        """End the wait, because a poll found jobs."""
        raise NotImplementedError


class Poller:
    """Polls for the subscriptions that wait, each with its own back-off.

    A poll includes each subscription that has waited for at least half of its interval, so that idle subscriptions
    are soon polled together, however many there are.
    """

    def __init__(self, max_interval_s: float) -> None:
        self.probe: Probe | None = None
        """Poll function; None while polling is not needed."""
        self.max_interval_s = max_interval_s
        self._waiting: dict[PolledSubscription, int] = {}
        """Subscriptions that wait, and how many tasks wait on each."""
        self._next_at = 0.0
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, subscription: PolledSubscription) -> None:
        """Poll for a subscription until `remove` is called as often as `add`."""
        waiting = self._waiting.get(subscription, 0)
        self._waiting[subscription] = waiting + 1
        if not waiting:
            subscription.due_at = asyncio.get_running_loop().time() + subscription.interval
        if self._task is None or self._task.done():
            self._task = tasks.start(self._run(), name="holdfast poll")
        elif subscription.due_at < self._next_at:
            self._changed.set()

    def remove(self, subscription: PolledSubscription) -> None:
        """Stop polling for a subscription if no other task waits on it."""
        self._waiting[subscription] -= 1
        if not self._waiting[subscription]:
            del self._waiting[subscription]
        if not self._waiting:
            self._changed.set()

    async def aclose(self) -> None:
        """Stop polling."""
        self.probe = None
        await tasks.stop(self._task)

    async def _run(self) -> None:
        """Poll until no subscription waits."""
        loop = asyncio.get_running_loop()
        while self._waiting:
            self._next_at = min(subscription.due_at for subscription in self._waiting)
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(self._next_at):
                    await self._changed.wait()
                    continue
            await self._poll(loop)

    async def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        due = [each for each in self._waiting if each.due_at - now <= each.interval / 2]
        queues: frozenset[str] = frozenset().union(*(subscription.queues for subscription in due))
        try:
            found = await self.probe(queues) if self.probe is not None else ()
        except HoldfastError:  # the subscribers ask the database themselves, and handle its error
            found = queues
        now = loop.time()
        for subscription in due:
            subscription.interval = min(2 * subscription.interval, self.max_interval_s)
            subscription.due_at = now + subscription.interval
            if subscription in self._waiting and not subscription.queues.isdisjoint(found):
                subscription.on_found()
