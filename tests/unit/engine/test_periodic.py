"""The periodic loop, without real waiting."""

import asyncio

from holdfast.engine import periodic
from holdfast.errors import Unavailable


async def run_ticks(monkeypatch, once, count):
    """Run a loop for `count` ticks; return its delays and events."""
    delays, stop = [], asyncio.Event()

    async def skip_wait(waiting, delay):
        waiting.close()
        delays.append(delay)
        if len(delays) == count:
            stop.set()

    monkeypatch.setattr(periodic.asyncio, "wait_for", skip_wait)
    events = []
    await periodic.run_periodically("reap", once, stop=stop, emit=events.append)
    return delays, events


async def test_a_periodic_loop_notices_soon_that_the_database_is_available_again(monkeypatch):
    """L3, P14: promotion and claims resume within five seconds."""

    async def once():
        raise Unavailable("database unavailable")

    delays, events = await run_ticks(monkeypatch, once, 1_000)
    assert delays == sorted(delays)
    assert max(delays) == periodic.MAX_DELAY_S <= 5 / 2
    assert [event.failures for event in events] == list(range(1, 1_001))


async def test_a_successful_tick_is_followed_by_the_interval_it_returned(monkeypatch):
    left = [Unavailable("database unavailable")] * 5

    async def once():
        if left:
            raise left.pop()
        return 7.0

    delays, events = await run_ticks(monkeypatch, once, 7)
    assert delays[5:] == [7.0, 7.0]
    assert len(events) == 5
