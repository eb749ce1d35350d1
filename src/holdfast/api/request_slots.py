"""Bound on the concurrent requests of each API key, so that one client cannot use up a node."""

import asyncio
import time
from collections import deque

from holdfast.errors import RateLimited

LARGE_BODY_WEIGHT = 10
"""Number of small requests that one with a large body counts as."""

MAX_LARGE_PAGES = 4
"""Large pages that a key may read at once.

Small reads of other callers wait behind them for a database connection.
"""

REFUSAL_FACTOR = 4.0
"""Pause after a refused large body, as a multiple of the time that its parsing took."""

MAX_REFUSAL_PAUSE_S = 5.0
MIN_LARGE_INTERVAL_S = 0.1
"""Time between two large bodies of a key after a refusal, until both are parsed."""

LONG_POLL_FACTOR = 5
"""Long polls that a key may have, as a multiple of its concurrent requests."""

WAIT_TIMEOUT_S = 10.0
"""Time that a request waits for others of the same key before it gets 429."""


class _KeySlots:
    """Requests of one key."""

    __slots__ = ("large_at", "used", "waiting")

    def __init__(self) -> None:
        self.used = 0
        self.large_at = 0.0
        """Monotonic time at which the next large body may be read."""
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Weights and wake-ups of requests that wait, in the order of arrival."""


class RequestSlots:
    """Requests in progress by API key. A request above the bound waits before its body is read."""

    def __init__(self, max_requests: int) -> None:
        self._max_requests = max_requests
        self._keys: dict[str, _KeySlots] = {}

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def large_page_weight(self) -> int:
        """Number of small requests that a request for a large page counts as."""
        return max(1, self._max_requests // MAX_LARGE_PAGES)

    async def acquire(self, key: str, weight: int) -> int:
        """Wait for a free slot; return the weight to release. Raises `RateLimited` after 10 s."""
        weight = min(weight, self._max_requests)
        slots = self._keys.get(key)
        if slots is None:
            slots = self._keys[key] = _KeySlots()
        if not slots.waiting and slots.used + weight <= self._max_requests:
            slots.used += weight
            return weight
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        slots.waiting.append((weight, turn))
        try:
            await asyncio.wait_for(asyncio.shield(turn), WAIT_TIMEOUT_S)
        except BaseException as error:
            self._give_up(key, slots, weight, turn)
            if isinstance(error, TimeoutError):
                detail = f"this key has {self._max_requests} requests in progress on this node: send fewer at once"
                raise RateLimited(detail, retry_after=1.0) from None
            raise
        return weight

    async def wait_after_refusals(self, key: str) -> None:
        """Wait before a large body is read, if earlier ones of this key were refused."""
        slots = self._keys[key]
        while (wait := slots.large_at - time.monotonic()) > 0:  # noqa: ASYNC110 - it grows with further refusals
            await asyncio.sleep(wait)
        slots.large_at = time.monotonic() + MIN_LARGE_INTERVAL_S if slots.large_at else 0.0

    def refused(self, key: str, seconds: float) -> None:
        """Make the next large body of this key wait, in proportion to the time of a refused one."""
        slots = self._keys[key]
        slots.large_at = max(slots.large_at, time.monotonic()) + min(REFUSAL_FACTOR * seconds, MAX_REFUSAL_PAUSE_S)

    def acquire_at_once(self, key: str) -> None:
        """Take a slot without waiting. Raises `RateLimited` if all are in use."""
        slots = self._keys.get(key)
        if slots is None:
            slots = self._keys[key] = _KeySlots()
        if slots.used >= self._max_requests:
            detail = f"this key has {self._max_requests} long polls in progress on this node: use fewer workers per key"
            raise RateLimited(detail, retry_after=5.0)
        slots.used += 1

    def release(self, key: str, weight: int) -> None:
        """End a request and start those that wait for it."""
        slots = self._keys[key]
        slots.used -= weight
        while slots.waiting and slots.used + slots.waiting[0][0] <= self._max_requests:
            started, turn = slots.waiting.popleft()
            slots.used += started
            turn.set_result(None)
        if not slots.used and not slots.waiting and slots.large_at <= time.monotonic():
            del self._keys[key]

    def _give_up(self, key: str, slots: _KeySlots, weight: int, turn: asyncio.Future[None]) -> None:
        """Leave the line, or release the slot if the turn came at the same moment."""
        if turn.done():
            self.release(key, weight)
        else:
            slots.waiting.remove((weight, turn))
            slots.used += weight
            self.release(key, weight)  # those behind may fit now
