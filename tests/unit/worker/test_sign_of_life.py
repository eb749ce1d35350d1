"""Signs of life of a worker process, and the silence that its supervisor measures."""

import asyncio

import pytest

from holdfast import tasks
from holdfast.model.bounds import MAX_NAME_LENGTH
from holdfast.model.time import seconds
from holdfast.model.worker import Unresponsiveness
from holdfast.worker.handlers.registry import Handler, Registry
from holdfast.worker.handlers.signature import Arguments
from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.processes.sign_of_life import SignOfLife, SilenceTimer, read_unresponsiveness
from holdfast.worker.running.monitors import EventLoopMonitor
from tests.support.eventually import eventually


def test_silence_is_counted_since_the_last_sign():
    timer = SilenceTimer(10.0)
    assert timer.observe(0.0, 11.0) == 1.0
    assert timer.observe(0.0, 12.0) == 2.0
    assert timer.observe(11.9, 13.0) == 0.0
    assert timer.observe(11.9, 14.0) == 1.0


def test_time_in_which_the_observer_was_frozen_does_not_count():
    timer = SilenceTimer(10.0)
    timer.observe(9.9, 10.5)
    assert timer.observe(9.9, 3_610.5) <= 2.0


@pytest.mark.slow
async def test_the_thread_gives_signs_until_it_is_stopped():
    shared_state = SharedState.create(1)
    sign_of_life = SignOfLife(shared_state)
    assert shared_state.alive_at == 0.0
    sign_of_life.start()

    async def given():
        return shared_state.alive_at

    first = await eventually(given)

    async def given_again():
        return shared_state.alive_at > first

    await eventually(given_again)
    sign_of_life.stop()
    shared_state.close()


def test_a_sign_of_life_changes_neither_the_deadline_nor_an_entry():
    shared_state = SharedState.create(1)
    shared_state.deadline = 5.0
    shared_state.alive_at = 7.0
    assert (shared_state.deadline, shared_state.alive_at, list(shared_state.running())) == (5.0, 7.0, [])
    shared_state.close()


def test_a_blocked_event_loop_is_recorded_with_the_handler():
    """F28"""
    shared_state = SharedState.create(1)
    assert read_unresponsiveness(shared_state, 0.0, 100.0) is None
    shared_state.record_blocked(90.0, "a-long-type-name")
    shared_state.record_blocked(96.0, "mail")
    assert shared_state.blocked() == (96.0, "mail")
    assert read_unresponsiveness(shared_state, 0.0, 100.0) == Unresponsiveness(seconds(4), "mail")
    assert (shared_state.deadline, shared_state.alive_at, list(shared_state.running())) == (0.0, 0.0, [])
    shared_state.clear_blocked()
    assert shared_state.blocked() is None
    shared_state.close()


def test_the_longest_type_name_fits_into_the_record():
    shared_state = SharedState.create(1)
    shared_state.record_blocked(1.0, "x" * MAX_NAME_LENGTH)
    assert shared_state.blocked() == (1.0, "x" * MAX_NAME_LENGTH)
    assert list(shared_state.running()) == []
    shared_state.close()


@pytest.mark.slow
async def test_the_monitor_names_the_handler_that_blocks_the_event_loop_until_it_runs_again():
    """F28"""
    registry, shared_state = Registry(), SharedState.create(1)
    recorded = []

    async def report():
        while not recorded:  # blocks the event loop until the monitor has noticed
            recorded.extend(filter(None, [shared_state.blocked()]))

    registry.add(Handler("report", report, "async", Arguments(report, "report")))
    monitoring = asyncio.ensure_future(EventLoopMonitor(registry, shared_state, lambda *_: None).run())
    await asyncio.sleep(0)
    await report()
    assert recorded[0][1] == "report"

    async def cleared():
        return shared_state.blocked() is None

    await eventually(cleared)
    await tasks.stop(monitoring)
    shared_state.close()
