"""Bound on the concurrent requests of each API key, so that one client cannot use up a node."""

import asyncio
from collections import deque

from holdfast.errors import RateLimited

LARGE_BODY_WEIGHT = 10
"""Number of small requests that one with a large body counts as."""

WAIT_TIMEOUT_S = 10.0
"""Time that a request waits for others of the same key before it gets 429."""


class _KeySlots:
    """Requests of one key."""

    __slots__ = ("used", "waiting")

    def __init__(self) -> None:
        self.used = 0
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Weights and wake-ups of requests that wait, in the order of arrival."""


class RequestSlots:
    """Requests in progress by API key. A request above the bound waits before its body is read."""

    def __init__(self, max_requests: int) -> None:
        self._max_requests = max_requests
        self._keys: dict[str, _KeySlots] = {}

    def __len__(self) -> int:
        return len(self._keys)

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

    def release(self, key: str, weight: int) -> None:
        """End a request and start those that wait for it."""
        slots = self._keys[key]
        slots.used -= weight
        while slots.waiting and slots.used + slots.waiting[0][0] <= self._max_requests:
            started, turn = slots.waiting.popleft()
            slots.used += started
            turn.set_result(None)
        if not slots.used and not slots.waiting:
            del self._keys[key]

    def _give_up(self, key: str, slots: _KeySlots, weight: int, turn: asyncio.Future[None]) -> None:
        """Leave the line, or release the slot if the turn came at the same moment."""
        if turn.done():
            self.release(key, weight)
        else:
            slots.waiting.remove((weight, turn))
            slots.used += weight
            self.release(key, weight)  # those behind may fit now
