"""Reads: jobs, counts, lanes, due times, clock and schema."""

import itertools
from collections import Counter

import pytest

from holdfast.model.job import JobFilter, Page
from holdfast.model.lane import Lane
from holdfast.model.state import Status
from holdfast.model.time import seconds
from tests.support.builders import (
    a_job,
    a_transition,
    enter,
    error,
    lane_of,
    move,
    put,
    read_all,
    report,
    roll_back,
    running,
    share,
    some_jobs,
    take,
)

ENDS = (Status.SUCCEEDED, Status.DEAD, Status.CANCELLED)


async def find(store, page=Page(1_000), **where):
    return await store.read(lambda tx: tx.find(JobFilter(**where), page))


async def look(store, *queues, cap=1_000):
    return await store.single(lambda tx: tx.lanes(queues, cap))


async def lanes(store, *queues, cap=1_000):
    return [lane for lane, _ in await look(store, *queues, cap=cap)]


async def spread(store, n=60):
    """Insert jobs of many kinds, waiting, running and finished; return them by id."""
    jobs = [
        a_job(
            queue=("mail", "images")[number % 2],
            tenant=("acme", "umbrella", "Acme")[number % 3],
            type=("send", "resize")[number % 4 // 2],
            delay=seconds(99) if number % 5 == 0 else None,
        )
        for number in range(n)
    ]
    await put(store, *jobs)
    held = await take(store, await enter(store), *{lane_of(job) for job in jobs}, limit=n)
    held.sort(key=lambda job: job.id)
    await move(store, *(a_transition(job, ENDS[number % 4]) for number, job in enumerate(held) if number % 4 < 3))
    return {job.id: job for job in await read_all(store, [job.id for job in jobs])}


async def test_an_unknown_job_is_not_found(store):
    await put(store, a_job())
    assert await read_all(store, [a_job().id]) == []
    assert await read_all(store, []) == []


async def test_jobs_are_read_from_every_table(store):
    jobs = await spread(store)
    assert {job.status for job in jobs.values()} == {Status.SCHEDULED, Status.RUNNING, *ENDS}
    assert len(await read_all(store, [*jobs, a_job().id])) == len(jobs)


@pytest.mark.slow
async def test_thousands_of_jobs_are_read_in_one_call(store):
    jobs = some_jobs(5_000)
    await put(store, *jobs)
    assert [job.id for job in await read_all(store, [job.id for job in jobs])] == [job.id for job in jobs]


async def test_a_search_returns_jobs_as_they_are_stored(store):
    jobs = await spread(store)
    assert {job.id: job for job in await find(store)} == jobs


async def test_a_search_returns_the_newest_jobs_first(store):
    jobs = await spread(store)
    assert [job.id for job in await find(store)] == sorted(jobs, reverse=True)
    assert [job.id for job in await find(store, Page(7))] == sorted(jobs, reverse=True)[:7]


@pytest.mark.parametrize("limit", [1, 7, 60])
async def test_pages_have_no_gap_and_no_repetition(store, limit):
    jobs = await spread(store)
    pages, before = [], None
    while page := await find(store, Page(limit, before)):
        assert len(page) <= limit
        pages.append([job.id for job in page])
        before = page[-1].id
    assert list(itertools.chain(*pages)) == sorted(jobs, reverse=True)


async def test_filters_return_exactly_the_matching_jobs(store):
    jobs = await spread(store)
    cases = [
        {"tenant": "acme"},
        {"tenant": "unknown"},
        {"queue": "mail"},
        {"type": "resize"},
        *({"status": status} for status in Status),
        {"tenant": "umbrella", "queue": "images", "type": "send", "status": Status.DEAD},
        {"tenant": "Acme", "status": Status.SUCCEEDED},
        {"queue": "mail", "status": Status.SCHEDULED},
    ]
    for where in cases:
        expected = [id_ for id_, job in jobs.items() if all(getattr(job, k) == v for k, v in where.items())]
        assert [job.id for job in await find(store, **where)] == sorted(expected, reverse=True), where


async def test_filters_work_across_pages(store):
    jobs = await spread(store)
    expected = sorted((id_ for id_, job in jobs.items() if job.tenant == "acme"), reverse=True)
    first = await find(store, Page(4), tenant="acme")
    rest = await find(store, Page(1_000, first[-1].id), tenant="acme")
    assert [job.id for job in (*first, *rest)] == expected


async def test_counts_include_unfinished_and_dead_jobs(store):
    """S22"""
    jobs = await spread(store)

    async def counted(**where):
        rows = await store.read(lambda tx: tx.counts(JobFilter(**where)))
        assert len({row[:4] for row in rows}) == len(rows)
        return {row[:4]: row.jobs for row in rows}

    def expected(**where):
        return Counter(
            (job.tenant, job.queue, job.type, job.status)
            for job in jobs.values()
            if job.status not in (Status.SUCCEEDED, Status.CANCELLED)
            and all(getattr(job, k) == v for k, v in where.items())
        )

    cases = [{}, {"tenant": "acme"}, {"queue": "mail"}, {"type": "send"}, {"status": Status.DEAD},
             {"status": Status.RUNNING, "tenant": "Acme"}]  # fmt: skip
    for where in cases:
        assert await counted(**where) == expected(**where), where


async def test_lanes_with_ready_jobs_are_returned(store):
    expected = {
        Lane(queue, tenant, priority)
        for queue in ("a", "b", "c")
        for tenant in [f"tenant-{number:03d}" for number in range(40)] + ["Tenant-000", "x"]
        for priority in (-1_000, -1, 0, 1, 1_000)
    }
    await put(store, *(a_job(queue=q, tenant=t, priority=p) for q, t, p in expected for _ in range(2)))
    found = await lanes(store, "a", "b", "c")
    assert len(found) == len(expected)
    assert set(found) == expected
    assert set(await lanes(store, "b")) == {lane for lane in expected if lane.queue == "b"}
    assert await lanes(store, "nothing", "A") == []
    assert await lanes(store) == []


async def test_lanes_without_ready_jobs_are_not_returned(store):
    waiting, finished, scheduled = a_job(tenant="waits"), a_job(tenant="done"), a_job(tenant="later", delay=seconds(9))
    await put(store, waiting, finished, scheduled)
    (held,) = await take(store, await enter(store), lane_of(finished))
    assert await lanes(store, "mail") == [lane_of(waiting)]
    await report(store, held)
    assert await lanes(store, "mail") == [lane_of(waiting)]
    await take(store, await enter(store), lane_of(waiting))
    assert await lanes(store, "mail") == []


async def test_lanes_are_returned_with_the_position_of_their_first_ready_job(store):
    pairs = [(a_job(tenant="a"), a_job(tenant="b", priority=3)) for _ in range(5)]
    for pair in pairs:
        await put(store, *pair)
    worker = await enter(store)
    for pair in pairs:
        found = await look(store, "mail")
        held = await take(store, worker, *(share(lane_of(job), max_jobs=1) for job in pair))
        assert {job.id for job in held} == {job.id for job in pair}
        assert sorted(found) == sorted((lane_of(job), job.seq) for job in held)
    assert await look(store, "mail") == []


async def test_the_number_of_lanes_per_queue_is_limited(store):
    await put(store, *(a_job(queue=queue, tenant=f"tenant-{n}") for queue in ("a", "b") for n in range(20)))
    found = await lanes(store, "a", "b", cap=7)
    assert Counter(lane.queue for lane in found) == {"a": 7, "b": 7}
    assert len(set(found)) == 14


async def test_a_lane_with_many_jobs_does_not_hide_others(store):
    await put(store, *some_jobs(5_000, tenant="big"), a_job(tenant="small"), a_job(tenant="big", priority=5))
    assert set(await lanes(store, "mail")) == {Lane("mail", "big", 0), Lane("mail", "small", 0), Lane("mail", "big", 5)}


async def test_without_scheduled_jobs_nothing_is_due(manual_store):
    assert await manual_store.single(lambda tx: tx.next_due()) is None
    await put(manual_store, a_job())
    await running(manual_store)
    assert await manual_store.single(lambda tx: tx.next_due()) is None


async def test_the_next_due_time_is_that_of_the_earliest_scheduled_job(manual_store, clock):
    await put(manual_store, a_job(delay=seconds(90)), a_job(delay=seconds(60)))
    assert await manual_store.single(lambda tx: tx.next_due()) == seconds(60)
    await report(manual_store, await running(manual_store), error())
    assert await manual_store.single(lambda tx: tx.next_due()) == seconds(1)
    await clock.advance(seconds(70))
    assert await manual_store.single(lambda tx: tx.next_due()) == 0
    await manual_store.run(lambda tx: tx.promote(10))
    assert await manual_store.single(lambda tx: tx.next_due()) == seconds(20)


async def test_the_store_reads_the_database_clock(manual_store, clock):
    """S24"""
    assert await manual_store.single(lambda tx: tx.now()) == clock.now
    await clock.advance(seconds(1))
    assert await manual_store.single(lambda tx: tx.now()) == clock.now


async def test_without_a_manual_clock_time_passes(store):
    earlier = await store.single(lambda tx: tx.now())
    (answer,) = await put(store, a_job())
    later = await store.single(lambda tx: tx.now())
    assert earlier <= answer.created_at <= later
    assert abs(later - _node_clock()) < seconds(3_600)


async def test_a_transaction_reads_its_own_writes(store):
    job = a_job()

    async def work(tx):
        await tx.insert([job], key_retention=seconds(1))
        found = await tx.get([job.id])
        assert [stored.id for stored in found] == [job.id]
        assert [lane for lane, _ in await tx.lanes(["mail"], 10)] == [lane_of(job)]

    await roll_back(store, work)
    assert await read_all(store, [job.id]) == []


async def test_the_store_reports_its_server(store, console, dialect):
    info = await store.info()
    names = {"postgres": {"postgresql"}, "mysql": {"mysql", "mariadb"}, "sqlite": {"sqlite"}}
    assert info.name.lower() in names[console.dialect]
    assert info.version[0].isdigit()
    assert info.pooled is (dialect == "pgbouncer")


async def test_the_schema_matches_this_version(store):
    await store.check_schema()
    assert await store.migrate() == []


def _node_clock():
    import time

    return time.time_ns() // 1_000
