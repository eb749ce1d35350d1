"""The one periodic loop, without waiting for it."""

import asyncio

from holdfast.engine import periodic
from holdfast.errors import Unavailable


async def rounds(monkeypatch, once, count):
    """Run a loop for so many rounds; how many seconds it would have waited after each."""
    waited, stop = [], asyncio.Event()

    async def pass_over(waiting, pause):
        waiting.close()
        waited.append(pause)
        if len(waited) == count:
            stop.set()

    monkeypatch.setattr(periodic.asyncio, "wait_for", pass_over)
    events = []
    await periodic.run_periodically("reap", once, stop=stop, emit=events.append)
    return waited, events


async def test_a_periodic_loop_notices_soon_that_the_database_is_available_again(monkeypatch):
    """L3, P14: claiming, with all that makes jobs due, within five seconds of its return."""

    async def once():
        raise Unavailable("away")

    waited, events = await rounds(monkeypatch, once, 1_000)
    assert waited == sorted(waited)
    assert max(waited) == periodic.MAX_DELAY_S <= 5 / 2
    assert [event.failures for event in events] == list(range(1, 1_001))


async def test_a_successful_tick_is_followed_by_the_interval_it_returned(monkeypatch):
    left = [Unavailable("away")] * 5

    async def once():
        if left:
            raise left.pop()
        return 7.0

    waited, events = await rounds(monkeypatch, once, 7)
    assert waited[5:] == [7.0, 7.0]
    assert len(events) == 5
