"""Wake-ups inside one process."""

import asyncio

from holdfast.model.lane import Lane, LaneReady
from holdfast.store.notify.wakeup import Hub

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
