"""Wake-ups inside one process."""

import asyncio

import pytest

from holdfast.errors import Unavailable
from holdfast.model.lane import Lane, LaneReady
from holdfast.store.notify.wakeup import Hub
from tests.support.eventually import eventually

READY = LaneReady(Lane("mail", "acme", 0), 7)


async def test_one_of_two_waiters_gets_the_notification_and_the_other_keeps_waiting():
    """An empty wake-up would make the other one scan all lanes without need, again and again under load."""
    hub = Hub(probe=None, max_poll_interval_s=1.0)
    subscription = hub.listen(["mail"])
    waiting = [asyncio.create_task(subscription.wait(60)) for _ in range(2)]
    await asyncio.sleep(0)
    hub.publish([READY])
    done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == [[READY]]
    hub.publish([READY])
    assert [await task for task in left] == [[READY]]


async def test_closing_ends_every_wait():
    hub = Hub(probe=None, max_poll_interval_s=1.0)
    subscription = hub.listen(["mail"])
    waiting = [asyncio.create_task(subscription.wait(60)) for _ in range(2)]
    await asyncio.sleep(0)
    subscription.close()
    assert [await task for task in waiting] == [[], []]


class Polls:
    """Poll function that records which queues it was called for."""

    def __init__(self):
        self.asked = []
        self.ready = set()
        self.fault = None

    async def __call__(self, queues):
        self.asked.append(queues)
        if self.fault is not None:
            raise self.fault
        return queues & self.ready

    async def reach(self, count):
        async def enough():
            return len(self.asked) >= count

        await eventually(enough)


@pytest.fixture
async def polls():
    return Polls()


@pytest.fixture
async def hub(polls):
    hub = Hub(probe=polls, max_poll_interval_s=0.05, finds_all=True)
    yield hub
    await hub.aclose()


async def test_one_poll_is_for_all_waiting_subscriptions(hub, polls):
    """Each for itself would be a transaction per queue, twice a second, behind a pooler."""
    queues = [f"q{n}" for n in range(200)]
    waiting = [asyncio.create_task(hub.listen([queue]).wait(600)) for queue in queues]

    async def together():
        return frozenset(queues) in polls.asked

    await eventually(together)
    await polls.reach(len(polls.asked) + 5)
    assert not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()


async def test_a_poll_wakes_only_the_subscriptions_of_the_queues_that_it_finds(hub, polls):
    mail, other = (asyncio.create_task(hub.listen([queue]).wait(600)) for queue in ("mail", "other"))
    await polls.reach(1)
    polls.ready = {"mail"}
    assert await mail == []
    await polls.reach(len(polls.asked) + 2)
    assert not other.done()
    assert not any("mail" in queues for queues in polls.asked[-1:])
    other.cancel()


async def test_after_a_failed_poll_the_subscribers_ask_the_database_themselves(hub, polls):
    """They handle its errors, and compare what they hold afterwards."""
    polls.fault = Unavailable("away")
    assert await hub.listen(["mail"]).wait(600) == []


async def test_a_cancelled_wait_does_not_cancel_the_poll_of_the_others(hub, polls):
    first, second = (asyncio.create_task(hub.listen([queue]).wait(600)) for queue in ("first", "second"))
    await polls.reach(1)
    first.cancel()
    polls.ready = {"second"}
    assert await second == []


async def test_no_poll_takes_place_while_wake_ups_are_pushed(hub, polls):
    hub.pushed = True
    subscription = hub.listen(["mail"])
    assert subscription.poll_interval_s is None
    assert await subscription.wait(0.1) is None
    assert polls.asked == []
