"""Retention of finished jobs, dead letters, keys and partitions."""

import pytest

from holdfast.compose import open_store
from holdfast.model.job import Unique
from holdfast.model.state import Status
from holdfast.model.time import Duration, Instant, days, seconds
from holdfast.store.port.store import Retention
from tests.support.builders import (
    a_job,
    a_transition,
    enter,
    error,
    hold,
    move,
    put,
    read,
    read_all,
    report,
    running,
    some_jobs,
)
from tests.support.clock import CLOCK

RULE = Retention(history=days(7), dead=days(30))


async def prune(store, rule=RULE, limit=1_000):
    return await store.run(lambda tx: tx.prune(rule, limit))


async def ended(store, end, n=1):
    held = await hold(store, await enter(store), n=n)
    await move(store, *(a_transition(job, end) for job in held))
    return [job.id for job in held]


@pytest.mark.parametrize(
    "end, kept", [(Status.SUCCEEDED, RULE.history), (Status.CANCELLED, RULE.history), (Status.DEAD, RULE.dead)]
)
async def test_a_finished_job_is_deleted_after_its_retention_and_not_before(manual_store, clock, end, kept):
    """S25"""
    ids = await ended(manual_store, end)
    await clock.advance(kept)
    assert await prune(manual_store) == 0
    assert len(await read_all(manual_store, ids)) == 1
    await clock.advance(Duration(1))
    assert await prune(manual_store) == 1
    assert await read_all(manual_store, ids) == []


async def test_retention_starts_when_a_job_finishes(manual_store, clock):
    """S25"""
    worker = await enter(manual_store, lease=days(1_000))
    (job,) = await hold(manual_store, worker)
    await clock.advance(days(100))
    await report(manual_store, job)
    await clock.advance(days(6))
    assert await prune(manual_store) == 0
    assert (await read(manual_store, job)).status is Status.SUCCEEDED


async def test_unfinished_jobs_are_never_pruned(manual_store, clock):
    """S25"""
    waiting, scheduled = a_job(), a_job(delay=days(3_000))
    await put(manual_store, waiting, scheduled)
    held, failing = await running(manual_store), await running(manual_store)
    await report(manual_store, failing, error())
    await clock.advance(days(2_000))
    assert await prune(manual_store, Retention(history=Duration(0), dead=Duration(0))) == 0
    assert len(await read_all(manual_store, [waiting.id, scheduled.id, held.id, failing.id])) == 4


async def test_a_key_within_its_retention_outlives_its_job(manual_store, clock):
    """S25"""
    job = a_job(idempotency_key="k", unique=Unique("u", within=days(300)))
    await put(manual_store, job, key_retention=days(300))
    await move(manual_store, a_transition(await read(manual_store, job), Status.CANCELLED))
    await clock.advance(days(299))
    assert await prune(manual_store) == 1
    assert await read_all(manual_store, [job.id]) == []
    by_key, by_unique = await put(manual_store, a_job(idempotency_key="k"), a_job(unique=Unique("u")))
    assert (by_key.id, by_unique.id) == (job.id, job.id)


async def test_pruning_respects_its_limit(manual_store, clock):
    ids = await ended(manual_store, Status.SUCCEEDED, n=25)
    await clock.advance(days(8))
    assert [await prune(manual_store, limit=10) for _ in range(4)] == [10, 10, 5, 0]
    assert await read_all(manual_store, ids) == []


async def test_pruning_keys_respects_the_limit(manual_store, clock):
    jobs = [a_job(idempotency_key=f"k-{number}") for number in range(25)]
    await put(manual_store, *jobs, key_retention=days(1))
    await move(
        manual_store, *[a_transition(job, Status.DEAD) for job in await read_all(manual_store, [j.id for j in jobs])]
    )
    await clock.advance(days(2))
    assert [await prune(manual_store, limit=10) for _ in range(4)] == [10, 10, 5, 0]


async def test_keys_of_unfinished_jobs_do_not_hide_expired_keys(manual_store, clock):
    """P25"""
    unfinished = [a_job(idempotency_key=f"live-{number}") for number in range(200)]
    await put(manual_store, *unfinished, key_retention=days(1))
    done = a_job(idempotency_key="done")
    await put(manual_store, done, key_retention=days(2))
    await move(manual_store, a_transition(await read(manual_store, done), Status.CANCELLED))
    await clock.advance(days(3))
    assert await prune(manual_store, limit=10) == 1


async def test_table_maintenance_deletes_nothing_within_the_retention(store):
    """S25"""
    ids = await ended(store, Status.SUCCEEDED, n=3) + await ended(store, Status.DEAD, n=3)
    await put(store, *some_jobs(3))
    for _ in range(2):
        await store.maintain_tables(RULE)
        await prune(store)
    assert len(await read_all(store, ids)) == 6


@pytest.mark.databases("postgres", "pgbouncer")
async def test_table_maintenance_drops_partitions_past_their_retention(database_url, store, clock):
    """S25: PostgreSQL drops the partition of the day."""
    now = await store.single(lambda tx: tx.now())
    earlier = await open_store(database_url, clock=CLOCK)
    try:
        await clock.set(Instant(now - days(1)))
        yesterday = await ended(earlier, Status.SUCCEEDED)
    finally:
        await earlier.aclose()
    today = await ended(store, Status.SUCCEEDED)
    await store.maintain_tables(Retention(history=days(2), dead=days(2)))
    assert len(await read_all(store, yesterday + today)) == 2
    again = await open_store(database_url)
    try:
        await again.maintain_tables(Retention(history=seconds(0), dead=days(2)))
        left = await read_all(store, yesterday + today)
        await again.migrate()  # creates the partition again for the tests that follow
    finally:
        await again.aclose()
    assert [job.id for job in left] == today
