"""Signs of life of a worker process, and the silence that its supervisor measures."""

from holdfast.worker.processes.shared_state import SharedState
from holdfast.worker.processes.sign_of_life import SignOfLife, SilenceTimer
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
