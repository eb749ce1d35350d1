"""Wake-ups inside one process."""

import asyncio

from holdfast.model.lane import Lane, LaneReady
from holdfast.store.notify.wakeup import Hub

NEWS = LaneReady(Lane("mail", "acme", 0), 7)


async def test_of_two_that_wait_one_is_told_where_and_the_other_waits_on():
    """Told "somewhere" instead, it would look at all lanes for nothing, again and again under load."""
    hub = Hub(probe=None, max_poll_interval_s=1.0)
    subscription = hub.listen(["mail"])
    waiting = [asyncio.create_task(subscription.wait(60)) for _ in range(2)]
    await asyncio.sleep(0)
    hub.publish([NEWS])
    done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == [[NEWS]]
    hub.publish([NEWS])
    assert [await task for task in left] == [[NEWS]]


async def test_closing_ends_every_wait():
    hub = Hub(probe=None, max_poll_interval_s=1.0)
    subscription = hub.listen(["mail"])
    waiting = [asyncio.create_task(subscription.wait(60)) for _ in range(2)]
    await asyncio.sleep(0)
    subscription.close()
    assert [await task for task in waiting] == [[], []]
