"""Paused queues: no job is claimed until the queue is resumed or the pause ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.engine.claiming import dispatch_settings
from holdfast.engine.claiming.claims import Claims
from holdfast.engine.queues import QueueService
from holdfast.model.lane import LaneReady
from holdfast.model.queue import Queue
from holdfast.model.time import Instant, seconds
from tests.support.builders import a_job, enter, hold, lane_of, put

if TYPE_CHECKING:
    from holdfast.store.port.store import Store
    from tests.support.clock import ManualClock


@pytest.fixture(autouse=True)
def always_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch_settings, "REFRESH_INTERVAL_S", 0)


async def rest(store: Store, name: str, until: Instant | None = None) -> Queue:
    return await QueueService(store).pause(name, reason="maintenance", until=until, by="key:ops")


async def test_jobs_of_a_paused_queue_are_not_claimed(store: Store) -> None:
    claims = Claims(store, await enter(store), ["mail", "reports"], None)
    first, paused, other = a_job("mail"), a_job("mail"), a_job("reports")
    await put(store, first)
    assert [job.id for job in await claims.claim(10)] == [first.id]
    await rest(store, "mail")
    await put(store, paused, other)
    claims.on_ready([LaneReady(lane_of(paused), 1), LaneReady(lane_of(other), 1)])

    assert [job.id for job in await claims.claim(10)] == [other.id]
    claims.on_ready([LaneReady(lane_of(paused), 1)])
    claims.on_ready([])
    assert await claims.claim(10) == []
    await QueueService(store).resume("mail", by="key:ops")
    assert [job.id for job in await claims.claim(10)] == [paused.id]


async def test_a_pause_with_an_end_expires_by_itself(manual_store: Store, clock: ManualClock) -> None:
    claims = Claims(manual_store, await enter(manual_store, lease=seconds(3_600)), ["mail"], None)
    job = a_job("mail")
    await put(manual_store, job)
    await rest(manual_store, "mail", until=Instant(clock.now + seconds(60)))
    assert await claims.claim(10) == []
    await clock.advance(seconds(59))
    assert await claims.claim(10) == []
    await clock.advance(seconds(1))

    assert [held.id for held in await claims.claim(10)] == [job.id]


async def test_queue_settings_are_stored_and_replaced(manual_store: Store, clock: ManualClock) -> None:
    until = Instant(clock.now + seconds(60))
    assert await rest(manual_store, "mail", until) == Queue("mail", True, "maintenance", until, clock.now, "key:ops")
    await clock.advance(seconds(5))
    assert await QueueService(manual_store).resume("mail", by="key:other") == Queue(
        "mail", False, "", None, clock.now, "key:other"
    )
    await rest(manual_store, "reports")

    assert [queue.name for queue in await manual_store.single(lambda tx: tx.queues())] == ["mail", "reports"]


async def test_held_jobs_are_counted_by_worker_and_tenant(store: Store) -> None:
    one, other = await enter(store), await enter(store)
    await hold(store, one, 2, tenant="a")
    await hold(store, one, 1, tenant="b")
    await hold(store, other, 3, tenant="a")

    found = await store.read(lambda tx: tx.held_counts())
    assert sorted(found) == sorted([(one, "a", 2), (one, "b", 1), (other, "a", 3)])


async def test_a_worker_is_listed_with_the_time_of_its_last_renewal(manual_store: Store, clock: ManualClock) -> None:
    worker = await enter(manual_store)
    registered = clock.now
    await clock.advance(seconds(5))
    await manual_store.single(lambda tx: tx.renew(worker, seconds(15)))
    (row,) = await manual_store.single(lambda tx: tx.workers())
    assert (row.started_at, row.renewed_at, row.expires_at) == (registered, clock.now, clock.now + seconds(15))
