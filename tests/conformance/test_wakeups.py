"""Wake-ups: subscribers learn of work immediately; a lost wake-up only delays it."""

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
    roll_back,
    share,
    take,
)
from tests.support.eventually import TIMEOUT_S, eventually

FOR_EVER = 600.0
"""Timeout in seconds after which a subscriber was not woken."""

LISTENERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


@pytest.fixture
async def other(database_url):
    """Return a store of another node."""
    opened = await open_store(database_url)
    yield opened
    await opened.aclose()


async def hearing(store, *queues):
    """Return a subscription that is connected and has no pending wake-ups."""
    subscription = store.listen(queues or ["mail"])
    server = await store.info()
    if server.name == "postgresql" and server.listens:  # other databases need no connection

        async def connected():
            return store._hub.probe is None

        await eventually(connected)
    while await subscription.wait(0) is not None:
        pass
    return subscription


async def first_job(store, worker, subscription, timeout=FOR_EVER):
    """Claim like a worker: scan, then wait for a wake-up while there is nothing."""
    while not (held := await take(store, worker, share(max_jobs=1))):
        news = await subscription.wait(timeout)
        assert news is not None or timeout < FOR_EVER, "was not woken"
    return held[0].id


async def test_an_insert_in_this_process_wakes_subscribers_with_its_lane(store):
    subscription = await hearing(store)
    await put(store, a_job(tenant="umbrella", priority=7), a_job(queue="other"))
    news = await subscription.wait(0)
    stored = (await take(store, await enter(store), MAIL._replace(tenant="umbrella", priority=7)))[0]
    assert [item.lane for item in news] == [lane_of(stored)]
    assert news[0].seq <= stored.seq
    assert await subscription.wait(0) is None


async def test_every_way_to_become_ready_wakes_subscribers(manual_store, clock):
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


async def test_jobs_that_are_not_ready_or_not_committed_wake_no_subscriber(manual_store):
    subscription = await hearing(manual_store)
    await put(manual_store, a_job(delay=seconds(50)))
    await roll_back(manual_store, lambda tx: tx.insert([a_job()], key_retention=days(1)))
    await put(manual_store, a_job(queue="other"))
    assert await subscription.wait(0) is None


async def test_a_wake_up_between_a_scan_and_the_wait_is_kept(store):
    subscription = await hearing(store)
    assert await take(store, await enter(store)) == []
    await put(store, a_job())
    await put(store, a_job(priority=3))
    assert {item.lane.priority for item in await subscription.wait(0)} == {0, 3}


async def test_a_wake_up_ends_a_wait_in_progress(store):
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


async def test_a_store_says_which_of_many_queues_have_ready_jobs(store):
    await put(store, a_job(queue="mail"), a_job(queue="mail", priority=3), a_job(queue="other"))
    await put(store, a_job(queue="later", delay=seconds(500)))
    await hold(store, await enter(store), queue="held")
    asked = ["mail", "later", "held", *(f"none-{n}" for n in range(1_000))]
    assert await store.single(lambda tx: tx.ready_queues(asked)) == {"mail"}
    assert await store.single(lambda tx: tx.ready_queues([])) == set()
    assert await store.single(lambda tx: tx.ready_queues(["other"])) == {"other"}


@pytest.mark.databases("mysql", "pgbouncer")
async def test_a_store_without_push_wakes_only_subscribers_of_queues_with_jobs(store, other):
    waiting = [asyncio.create_task((await hearing(store, f"q{n}")).wait(FOR_EVER)) for n in range(100)]
    polled, probe = [], store._hub.probe

    async def recording(queues):
        polled.append(queues)
        return await probe(queues)

    async def enough(upto):
        return len(polled) >= upto

    store._hub.probe = recording
    await put(other, a_job(queue="q7"))
    async with asyncio.timeout(TIMEOUT_S):
        assert await waiting[7] == []
    upto = len(polled) + 2
    await eventually(lambda: enough(upto))
    assert [n for n, task in enumerate(waiting) if task.done()] == [7]
    for task in waiting:
        task.cancel()


async def test_every_subscription_gets_a_wake_up(store):
    subscriptions = [await hearing(store), await hearing(store, "other", "mail")]
    await put(store, a_job())
    assert [bool(await subscription.wait(0)) for subscription in subscriptions] == [True, True]


async def test_closing_a_subscription_ends_its_wait(store):
    subscription = await hearing(store)
    waiting = asyncio.create_task(subscription.wait(FOR_EVER))
    await asyncio.sleep(0)
    subscription.close()
    async with asyncio.timeout(TIMEOUT_S):
        await waiting
    await put(store, a_job())  # no subscription is left: nothing to wake, and no error


async def test_without_wake_ups_a_wait_ends_at_its_timeout_or_with_a_scan(store):
    """A store without push polls from time to time; one with push does not."""
    subscription = await hearing(store)
    assert await subscription.wait(0.05) in (None, [])


@pytest.mark.databases("postgres")
async def test_a_listener_whose_connection_is_closed_reconnects(store, other, console):
    """P37, P05"""
    subscription = await hearing(store)
    worker = await enter(store)
    for _ in range(2):
        ((pid,),) = await console.run(LISTENERS)
        await console.run(f"SELECT pg_terminate_backend({pid})")
        async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:  # polling finds the job meanwhile
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
async def test_a_store_that_cannot_listen_polls(store, other):
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
async def test_lost_notifications_only_delay_work(store, other):
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
async def test_more_lanes_than_fit_a_notification_still_wake_subscribers(store, other):
    subscription = await hearing(store)
    await put(other, *(a_job(tenant=f"tenant-{'x' * 100}-{number}") for number in range(500)))
    async with asyncio.timeout(TIMEOUT_S):
        assert await subscription.wait(FOR_EVER) == []  # in an unknown lane of this queue
