"""Cached dispatch settings: when they are read, and which of them concurrent claims see."""

import asyncio

import pytest

from holdfast.engine.claiming.dispatch_settings import REFRESH_INTERVAL_S, DispatchSettingsCache
from holdfast.errors import Unavailable
from holdfast.model.limit import DispatchSettings
from holdfast.model.queue import Queue
from holdfast.model.time import Instant


class FakeStore:
    """Store of dispatch settings whose reads wait until they are let through."""

    def __init__(self):
        self.settings = DispatchSettings(1)
        self.reads = 0
        self.faults = []
        self.open = asyncio.Event()
        self.open.set()

    async def single(self, work):
        self.reads += 1
        await self.open.wait()
        if self.faults:
            raise self.faults.pop()
        return self.settings.version, Instant(0)

    async def read(self, work):
        return self.settings


class Clock:
    """Monotonic clock that a test moves."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
async def store():
    return FakeStore()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cache(store, clock):
    return DispatchSettingsCache(store, monotonic=clock)


async def test_recent_settings_are_not_read_again(cache, store, clock):
    await cache.refresh()
    clock.now += REFRESH_INTERVAL_S * 0.9
    assert not await cache.refresh()
    assert store.reads == 1


async def test_a_claim_beside_a_refresh_sees_the_refreshed_settings(cache, store, clock):
    """The worker was busy, so its settings are old; a queue that was paused long ago must not start a job."""
    await cache.refresh()
    clock.now += 3_600
    store.settings = DispatchSettings(2, queues=(Queue("mail", paused=True),))
    store.open.clear()
    async with asyncio.TaskGroup() as group:
        both = [group.create_task(cache.refresh()) for _ in range(2)]
        for _ in range(5):
            await asyncio.sleep(0)
        assert not any(refresh.done() for refresh in both)
        store.open.set()
    assert [refresh.result() for refresh in both] == [True, False]
    assert cache.view.is_paused("mail", "acme")
    assert store.reads == 2


async def test_a_failed_read_is_repeated_by_the_next_claim(cache, store):
    store.faults.append(Unavailable("away"))
    with pytest.raises(Unavailable):
        await cache.refresh()
    await cache.refresh()
    assert store.reads == 2
