"""The periodic loop, without real waiting."""

import asyncio
import logging

from holdfast.engine import periodic
from holdfast.engine.outages import OutageMonitor
from holdfast.errors import Unavailable
from holdfast.telemetry.emit import log_event
from holdfast.telemetry.events import DatabaseChanged, LoopFailed


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
    outages = OutageMonitor(events.append)
    await periodic.run_periodically("reap", once, stop=stop, emit=events.append, outages=outages)
    return delays, events


def failures(events):
    return [event.failures for event in events if isinstance(event, LoopFailed)]


async def test_a_periodic_loop_notices_soon_that_the_database_is_available_again(monkeypatch):
    """L3, P14: promotion and claims resume within five seconds."""

    async def once():
        raise Unavailable("database unavailable")

    delays, events = await run_ticks(monkeypatch, once, 1_000)
    assert delays == sorted(delays)
    assert max(delays) == periodic.MAX_DELAY_S <= 5 / 2
    assert failures(events) == list(range(1, 1_001))


async def test_a_successful_tick_is_followed_by_the_interval_it_returned(monkeypatch):
    left = [Unavailable("database unavailable")] * 5

    async def once():
        if left:
            raise left.pop()
        return 7.0

    delays, events = await run_ticks(monkeypatch, once, 7)
    assert delays[5:] == [7.0, 7.0]
    assert failures(events) == [1, 2, 3, 4, 5]


async def test_an_outage_is_emitted_once_and_its_end_once(monkeypatch):
    left = [None, *[Unavailable("connection refused")] * 5, None]

    async def once():
        if left and (error := left.pop()):
            raise error
        return 1.0

    _, events = await run_ticks(monkeypatch, once, 9)
    changes = [(event.up, event.reason) for event in events if isinstance(event, DatabaseChanged)]
    assert changes == [(False, "connection refused"), (True, "")]


def test_a_round_that_began_before_the_last_failure_does_not_end_the_outage():
    events, times = [], iter([1.0, 2.0, 3.0, 9.0])
    outages = OutageMonitor(events.append, lambda: next(times))
    began = outages.now()
    outages.failed(Unavailable("connection refused"))
    outages.succeeded(began)
    assert [event.up for event in events] == [False]
    outages.succeeded(outages.now())
    assert (events[-1].up, events[-1].seconds) == (True, 7.0)


def test_the_failures_of_loops_during_an_outage_are_logged_once(caplog):
    """The log says once that the database is away, and once that it is back."""
    caplog.set_level(logging.INFO, "holdfast")
    outages = OutageMonitor(log_event)
    for failed in range(1, 6):
        for loop in ("reap", "promote", "prune"):
            outages.failed(Unavailable("connection refused"))
            log_event(LoopFailed(loop=loop, error="connection refused", failures=failed, unavailable=True))
    outages.succeeded(outages.now())
    lines = [record.getMessage() for record in caplog.records if record.levelname != "DEBUG"]
    assert len(lines) == 2
    assert "the database is unavailable" in lines[0]
    assert "the database is available again" in lines[1]
