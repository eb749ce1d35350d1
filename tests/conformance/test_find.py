"""Bounded job search, removal of jobs, and groups of dead letters."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.model.ids import ids_with_prefix
from holdfast.model.job import HeldJob, JobFilter, Page
from holdfast.model.state import Status
from holdfast.model.step import Step, StepState
from holdfast.model.time import seconds
from holdfast.store.sql import job_search
from tests.support.builders import (
    a_job,
    a_transition,
    enter,
    hold,
    lane_of,
    move,
    put,
    read_all,
    running,
    some_jobs,
    take,
)
from tests.support.long import LONG

ENDS = (Status.SUCCEEDED, Status.DEAD, Status.CANCELLED)
TENANTS, QUEUES, TYPES, TAGS = ("acme", "umbrella", "Acme"), ("mail", "images"), ("send", "resize"), ("a", ",", 'q"')


async def spread(store, n=48):
    """Insert jobs of many kinds in every state; return them by id."""
    jobs = [
        a_job(
            queue=QUEUES[number % 2],
            tenant=TENANTS[number % 3],
            type=TYPES[number % 4 // 2],
            tags=TAGS[: number % 4],
            delay=seconds(99) if number % 5 == 0 else None,
        )
        for number in range(n)
    ]
    await put(store, *jobs)
    held = await take(store, await enter(store), *{lane_of(job) for job in jobs[: n // 2]}, limit=n // 2)
    held.sort(key=lambda job: job.id)
    await move(
        store,
        *(
            a_transition(
                job, ENDS[number % 4], fingerprint=f"e{number % 3}" if ENDS[number % 4] is Status.DEAD else None
            )
            for number, job in enumerate(held)
            if number % 4 < 3
        ),
    )
    return {job.id: job for job in await read_all(store, [job.id for job in jobs])}


def matches(job, where):
    plain = all(getattr(job, name) == where[name] for name in ("tenant", "queue", "type", "status") if name in where)
    tagged = "tag" not in where or (job.tags is not None and where["tag"] in job_search._TAGS.decode(job.tags))
    return plain and tagged and ("error" not in where or job.fingerprint == where["error"])


async def read_pages(store, page, max_rows, **where):
    """Read all pages; return the job ids and the number of pages."""
    found, before, parts = [], None, 0
    while True:
        part = await store.read(
            lambda tx, before=before: tx.seek(JobFilter(**where), Page(page, before), max_rows=max_rows)
        )
        assert len(part.jobs) <= page
        assert part.cursor is None or before is None or part.cursor < before, "the search must make progress"
        found += [job.id for job in part.jobs]
        before, parts = part.cursor, parts + 1
        if before is None:
            return found, parts


CASES = [
    {},
    *({"status": status} for status in Status),
    {"tenant": "acme"},
    {"tenant": "unknown"},
    {"tenant": "umbrella", "status": Status.READY},
    {"tenant": "Acme", "status": Status.SCHEDULED, "type": "send"},
    {"queue": "mail", "type": "resize"},
    {"tag": ","},
    {"tag": 'q"', "tenant": "acme"},
    {"tag": "b"},
    {"error": "e1"},
    {"error": "e1", "tenant": "acme"},
    {"error": "e1", "tenant": "acme", "queue": "mail"},
    {"error": "e1", "status": Status.READY},
]


@pytest.mark.parametrize("few", [0, 5_000], ids=["scanned", "collected"])
async def test_short_searches_together_find_the_same_jobs_as_a_long_one(store, few, monkeypatch):
    """T22: for any filter, page size and maximum of rows."""
    monkeypatch.setattr(job_search, "MAX_COLLECTED", few)
    monkeypatch.setattr(job_search, "MAX_COLLECTED_RUNNING", few)
    jobs = await spread(store)
    for where in CASES:
        expected = sorted((job_id for job_id, job in jobs.items() if matches(job, where)), reverse=True)
        for page, most in ((1_000, 1_000), (3, 7), (7, 3), (1, 1)):
            found, _ = await read_pages(store, page, most, **where)
            assert found == expected, (where, page, most)


@settings(max_examples=200 if LONG else 25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
async def test_pages_of_any_filter_have_no_gap_and_no_repetition(stored_jobs, data):
    """T21"""
    store, jobs = stored_jobs
    where = {}
    for name, values in (("tenant", TENANTS), ("queue", QUEUES), ("type", TYPES), ("tag", TAGS), ("status", Status)):
        if data.draw(st.booleans(), label=name):
            where[name] = data.draw(st.sampled_from(list(values)), label=name)
    page, most = data.draw(st.integers(1, 20), label="page"), data.draw(st.integers(1, 40), label="most")
    found, _ = await read_pages(store, page, most, **where)
    assert found == sorted((job_id for job_id, job in jobs.items() if matches(job, where)), reverse=True)


@pytest.fixture
async def stored_jobs(store):
    return store, await spread(store)


async def test_a_prefix_of_ids_finds_jobs_in_every_state_and_no_others(stored_jobs):
    """T22: jobs of one millisecond share 12 digits of their ids."""
    store, jobs = stored_jobs
    assert {job.status.terminal for job in jobs.values()} == {True, False}
    newest = max(jobs).hex
    for prefix in {job_id.hex[:length] for job_id in jobs for length in (8, 11, 12, 14, 32)} | {"ffffffff", "0" * 32}:
        with_it = {job_id: job for job_id, job in jobs.items() if job_id.hex.startswith(prefix)}
        for where in ({}, {"tenant": "acme"}, {"status": Status.READY}, {"tenant": "acme", "status": Status.DEAD}):
            expected = sorted((job_id for job_id, job in with_it.items() if matches(job, where)), reverse=True)
            found, _ = await read_pages(store, 1_000, 1_000, **where, ids=ids_with_prefix(prefix))
            assert found == expected, (prefix, where)
    expected = sorted((job_id for job_id in jobs if job_id.hex.startswith(newest[:8])), reverse=True)
    for page, most in ((3, 7), (7, 3), (1, 1)):
        assert (await read_pages(store, page, most, ids=ids_with_prefix(newest[:8])))[0] == expected


async def test_many_claims_and_queues_hide_no_job_from_a_search(store, monkeypatch):
    """T22: jobs are collected completely, or the table is scanned."""
    worker = await enter(store)
    again, *others = [(await hold(store, worker))[0] for _ in range(4)]  # each in its own claim and queue
    for _ in range(3):
        await move(store, a_transition(again, Status.READY))
        (again,) = await take(store, worker, lane_of(again))
    (own,) = await put(store, a_job(tenant="umbrella", queue="last"))
    held = sorted((job.id for job in (again, *others)), reverse=True)
    for few, most_running in ((3, 20_000), (3, 4)):
        monkeypatch.setattr(job_search, "MAX_COLLECTED", few)
        monkeypatch.setattr(job_search, "MAX_COLLECTED_RUNNING", most_running)
        assert (await read_pages(store, 10, 100, status=Status.RUNNING))[0] == held
        assert (await read_pages(store, 10, 100, tenant="umbrella"))[0] == [own.id]


async def test_a_search_ends_after_its_maximum_of_rows_even_if_it_found_nothing(store):
    await put(store, a_job(type="rare"), *some_jobs(40))
    part = await store.read(lambda tx: tx.seek(JobFilter(type="rare"), Page(10), max_rows=15))
    assert part.jobs == []
    assert part.cursor is not None
    found, parts = await read_pages(store, 10, 15, type="rare")
    assert (len(found), parts) == (1, 3)


async def test_filters_compare_the_stored_creation_time_exactly(store):
    """The time in an id only approximates the creation time."""
    ids = [(await put(store, a_job()))[0].id for _ in range(5)]
    jobs = await read_all(store, ids)
    at = jobs[2].created_at
    found, _ = await read_pages(store, 10, 100, created_after=at)
    assert set(found) == {job.id for job in jobs if job.created_at > at}
    found, _ = await read_pages(store, 10, 100, created_before=at, tenant="acme")
    assert set(found) == {job.id for job in jobs if job.created_at < at}


async def test_only_unchanged_jobs_are_removed(store):
    jobs = await spread(store, 20)
    (held,) = await hold(store, await enter(store), queue="busy")
    (waiting,) = await read_all(store, [(await put(store, a_job(queue="busy")))[0].id])
    await take(store, await enter(store), lane_of(waiting))
    assert await store.run(lambda tx: tx.remove([waiting])) == set()
    unheld = [job for job in jobs.values() if job.status is not Status.RUNNING]
    assert await store.run(lambda tx: tx.remove(unheld)) == {job.id for job in unheld}
    assert await store.run(lambda tx: tx.remove(unheld)) == set()
    left = {job.id for job in await store.read(lambda tx: tx.find(JobFilter(), Page(100)))}
    assert left == {held.id, waiting.id, *jobs} - {job.id for job in unheld}


async def test_removing_a_job_removes_its_steps(store):
    job, other = await running(store), await running(store)
    recorded = Step("charge", StepState.DONE, b"1")
    for each in (job, other):
        await store.run(lambda tx, each=each: tx.record_step(HeldJob(each.id, each.fence, each.worker), recorded))
    await move(store, a_transition(job, Status.SUCCEEDED))
    (done,) = await read_all(store, [job.id])
    await store.run(lambda tx: tx.remove([done]))
    assert await store.single(lambda tx: tx.steps(job.id)) == []
    assert len(await store.single(lambda tx: tx.steps(other.id))) == 1


async def test_dead_letters_are_grouped_by_tenant_and_error(store):
    """S20"""
    worker = await enter(store)
    kinds = [("acme", "e1"), ("acme", "e2"), ("umbrella", "e1"), ("Acme", "e9"), ("acme", "e1"), ("acme", "e1")]
    dead = []
    for tenant, error in kinds:
        (job,) = await hold(store, worker, tenant=tenant)
        await move(store, a_transition(job, Status.DEAD, fingerprint=error))
        dead.append(job.id)

    async def groups(tenant=None, after=None, limit=100, max_count=100):
        return await store.read(lambda tx: tx.dead_groups(tenant, after, limit=limit, max_count=max_count))

    found = await groups()
    assert [(group.tenant, group.error, group.jobs) for group in found] == [
        ("Acme", "e9", 1), ("acme", "e1", 3), ("acme", "e2", 1), ("umbrella", "e1", 1),
    ]  # fmt: skip
    assert (found[1].oldest, found[1].newest) == (dead[0], dead[5])
    assert [(group.tenant, group.error) for group in await groups("acme")] == [("acme", "e1"), ("acme", "e2")]
    assert await groups("acm") == await groups("acme2") == []
    assert [group.jobs for group in await groups("acme", max_count=2)] == [2, 1]
    assert [group.error for group in await groups("acme", limit=1)] == ["e1"]
    assert [group.error for group in await groups("acme", after=("acme", "e1"))] == ["e2"]
    assert [group.error for group in await groups("acme", after=("umbrella", "e0"))] == ["e1", "e2"], "only its own"
    after, walked = None, []
    while page := await groups(after=after, limit=1):
        walked += page
        after = (page[-1].tenant, page[-1].error)
    assert walked == found


async def test_the_lease_of_a_registered_worker_is_returned(store):
    worker = await enter(store)
    (row,) = await store.single(lambda tx: tx.workers())
    assert await store.single(lambda tx: tx.lease_until(worker)) == row.expires_at
    assert await store.single(lambda tx: tx.lease_until(12345)) is None
