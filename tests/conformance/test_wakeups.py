"""Wake-ups: whoever waits hears of work at once, and loses nothing but time when it does not hear."""

import asyncio

import pytest

from holdfast.compose import open_store
from holdfast.engine.jobs import actions
from holdfast.errors import Unavailable
from holdfast.model.outcome import Interrupted
from holdfast.model.time import days, seconds
from tests.support.builders import (
    MAIL,
    a_job,
    enter,
    error,
    hold,
    lane_of,
    put,
    read,
    reap_once,
    report,
    share,
    take,
    roll_back,
)
from tests.support.eventually import TIMEOUT_S, eventually

FOR_EVER = 600.0
"""Seconds: whoever waits that long was not woken."""

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture
async def other(database_url):
    """Another node."""
    opened = await open_store(database_url)
    yield opened
    await opened.aclose()


async def hearing(store, *queues):
    """A subscription that hears and has nothing left to tell."""
    subscription = store.listen(queues or ["mail"])
    server = await store.info()
    if server.name == "postgresql" and server.listens:  # elsewhere nothing has to be connected first

        async def connected():
            return store._hub.probe is None

        await eventually(connected)
    while await subscription.wait(0) is not None:
        pass
    return subscription


async def first_job(store, worker, subscription, timeout=FOR_EVER):
    """What a worker does: look, and wait to be woken while there is nothing."""
    while not (held := await take(store, worker, share(quota=1))):
        news = await subscription.wait(timeout)
        assert news is not None or timeout < FOR_EVER, "was not woken"
    return held[0].id


async def test_an_insert_in_this_process_is_heard_with_its_lane(store):
    subscription = await hearing(store)
    await put(store, a_job(tenant="umbrella", priority=7), a_job(queue="other"))
    news = await subscription.wait(0)
    stored = (await take(store, await enter(store), MAIL._replace(tenant="umbrella", priority=7)))[0]
    assert [item.lane for item in news] == [lane_of(stored)]
    assert news[0].seq <= stored.seq
    assert await subscription.wait(0) is None


async def test_everything_that_makes_a_job_ready_is_heard(manual_store, clock):
    subscription = await hearing(manual_store)
    worker = await enter(manual_store, lease=days(1))

    async def heard(job):
        news = await subscription.wait(0)
        assert news, "was not woken"
        assert [item.lane for item in news] == [lane_of(job)]
        assert news[0].seq <= (await read(manual_store, job)).seq

    (job,) = await hold(manual_store, worker, queue="mail", max_attempts=2)
    await heard(job)
    await report(manual_store, job, Interrupted())
    await heard(job)
    (job,) = await take(manual_store, worker)
    await report(manual_store, job, error())
    await clock.advance(seconds(10))
    await manual_store.run(lambda tx: tx.promote(10))
    await heard(job)
    (job,) = await take(manual_store, worker)
    await report(manual_store, job, error())
    await actions.retry(manual_store, [job.id])
    await heard(job)
    await take(manual_store, worker)
    await clock.advance(days(1))
    assert await reap_once(manual_store) == 1
    await heard(job)


async def test_what_is_not_ready_or_not_committed_wakes_nobody(manual_store):
    subscription = await hearing(manual_store)
    await put(manual_store, a_job(delay=seconds(50)))
    await roll_back(manual_store, lambda tx: tx.insert([a_job()], key_retention=days(1)))
    await put(manual_store, a_job(queue="other"))
    assert await subscription.wait(0) is None


async def test_what_is_heard_between_a_look_and_the_wait_is_kept(store):
    subscription = await hearing(store)
    assert await take(store, await enter(store)) == []
    await put(store, a_job())
    await put(store, a_job(priority=3))
    assert {item.lane.priority for item in await subscription.wait(0)} == {0, 3}


async def test_a_wait_that_is_in_progress_is_ended_by_news(store):
    subscription = await hearing(store)
    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        found = group.create_task(first_job(store, await enter(store), subscription))
        job = a_job()
        await put(store, job)
    assert found.result() == job.id


async def test_a_job_submitted_by_another_node_wakes_this_one(store, other):
    subscription = await hearing(store)
    worker = await enter(store)
    for _ in range(5):
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
            found = group.create_task(first_job(store, worker, subscription))
            job = a_job()
            await put(other, job)
        assert found.result() == job.id


async def test_each_subscription_is_told(store):
    subscriptions = [await hearing(store), await hearing(store, "other", "mail")]
    await put(store, a_job())
    assert [bool(await each.wait(0)) for each in subscriptions] == [True, True]


async def test_closing_a_subscription_ends_its_wait(store):
    subscription = await hearing(store)
    waiting = asyncio.create_task(subscription.wait(FOR_EVER))
    await asyncio.sleep(0)
    subscription.close()
    async with asyncio.timeout(TIMEOUT_S):
        await waiting
    await put(store, a_job())  # which tells nobody, and fails for nobody


async def test_without_news_a_wait_ends_at_its_timeout_or_with_a_look(store):
    """A store that cannot hear of others looks now and then; one that can stays silent."""
    subscription = await hearing(store)
    assert await subscription.wait(0.05) in (None, [])


@pytest.mark.databases("postgres")
async def test_a_listener_whose_connection_is_cut_hears_again(store, other, console):
    """P37, P05"""
    subscription = await hearing(store)
    worker = await enter(store)
    for _ in range(2):
        ((pid,),) = await console.run(LISTENERS)
        await console.run(f"SELECT pg_terminate_backend({pid})")
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:  # polling finds it meanwhile
            found = group.create_task(first_job(store, worker, subscription))
            job = a_job()
            await put(other, job)
        assert found.result() == job.id

        async def listens_anew(gone=pid):
            listening = await console.run(LISTENERS)
            return listening and listening != [(gone,)] and store._hub.probe is None

        await eventually(listens_anew)
    while await subscription.wait(0) is not None:
        pass
    await put(other, a_job())
    async with asyncio.timeout(TIMEOUT_S):
        news = await subscription.wait(FOR_EVER)
    assert [item.lane for item in news] == [MAIL]


@pytest.mark.databases("postgres")
async def test_who_cannot_listen_at_all_polls(store, other):
    """P37"""

    async def refuse():
        raise Unavailable("no connection for listening")

    store._listener._connect = refuse
    subscription = store.listen(["mail"])
    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        found = group.create_task(first_job(store, await enter(store), subscription))
        job = a_job()
        await put(other, job)
    assert found.result() == job.id


@pytest.mark.databases("postgres")
async def test_losing_every_notification_costs_only_the_wait(store, other):
    """P37"""
    subscription = await hearing(store)
    other._notifier.tell = lambda news: None
    worker = await enter(store)
    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        found = group.create_task(first_job(store, worker, subscription, timeout=0.1))
        job = a_job()
        await put(other, job)
    assert found.result() == job.id


@pytest.mark.databases("postgres")
async def test_news_of_more_lanes_than_a_notification_holds_are_still_heard(store, other):
    subscription = await hearing(store)
    await put(other, *(a_job(tenant=f"tenant-{'x' * 100}-{number}") for number in range(500)))
    async with asyncio.timeout(TIMEOUT_S):
        assert await subscription.wait(FOR_EVER) == []  # somewhere in this queue
