"""Long periods on a manual clock, and several engines on one store."""

import asyncio

import pytest

from holdfast.compose import open_store
from holdfast.engine.engine import Engine, EngineRules
from holdfast.engine.maintenance import promote_due
from holdfast.errors import Unavailable
from holdfast.model.job import JobFilter, JobSpec, RetryRule
from holdfast.model.outcome import Succeeded
from holdfast.model.state import Status
from holdfast.model.time import days, seconds
from holdfast.policy.lifecycle import MAX_LOG_ENTRIES, attempt_log
from holdfast.store.port.store import Retention
from holdfast.telemetry.events import LoopFailed
from tests.support.builders import a_job, a_transition, a_worker, enter, error, fields, hold, move, put, read_all, take
from tests.support.clock import CLOCK
from tests.support.eventually import eventually
from tests.support.interleave import FaultyStore, before

HOURLY = RetryRule(base=seconds(3_600), cap=seconds(3_600), jitter=0.0)


def mail(number=0, **options):
    return JobSpec(type="send", payload={"to": number}, **options)


async def test_a_month_of_retries_loses_no_job_and_exceeds_no_attempt_limit(manual_store, clock):
    """P10, S8: no retention ends a job that is still retrying, or frees its idempotency key."""
    engine = await Engine.open(manual_store, EngineRules(retry=HOURLY, key_retention=days(1)))
    worker = a_worker()
    await engine.workers.register(worker, days(60))
    claims = engine.attempts.claims(worker.id, ["default"])
    spec = mail(max_attempts=120, idempotency_key="order-1", retry=RetryRule(delays=(seconds(6 * 3_600),), jitter=0.0))
    receipt = await engine.jobs.submit(spec)
    starts = 0
    for quarter in range(4 * 31):
        claims.on_ready([])
        for job in await claims.claim(10):
            starts += 1
            assert await engine.attempts.settle(job, error())
        await clock.advance(seconds(6 * 3_600))
        await promote_due(manual_store)
        await manual_store.run(lambda tx: tx.prune(Retention(days(1), days(1)), 100))
        if quarter % 10 == 0:
            assert (await engine.jobs.submit(spec)).id == receipt.id
        if (await engine.jobs.get(receipt.id)).status is Status.DEAD:
            break
    job = await engine.jobs.get(receipt.id)
    assert (starts, job.attempts, job.status) == (120, 120, Status.DEAD)
    log = attempt_log(job)
    assert len(log) == MAX_LOG_ENTRIES
    assert (log[0].attempt, log[-1].attempt) == (1, 120)


async def test_a_job_scheduled_far_ahead_starts_once(manual_store, clock):
    """P02: a hundred leases later."""
    engine = await Engine.open(manual_store)
    await engine.jobs.submit(mail(delay=seconds(1_500)))
    starts = 0
    for _ in range(110):
        await clock.advance(seconds(15))
        await promote_due(manual_store)
        worker = a_worker()
        await engine.workers.register(worker, seconds(15))
        for job in await engine.attempts.claims(worker.id, ["default"]).claim(10):
            starts += 1
            assert await engine.attempts.settle(job, Succeeded())
        await engine.workers.depart(worker.id)
    assert starts == 1


async def test_a_tenant_with_one_job_is_served_despite_the_backlog_of_another(store):
    """S14"""
    engine = await Engine.open(store)
    await engine.jobs.submit_many([mail(number, tenant="big") for number in range(2_000)])
    await engine.jobs.submit(mail(tenant="small"))
    worker = a_worker()
    await engine.workers.register(worker, seconds(600))
    claims = engine.attempts.claims(worker.id, ["default"])
    first = [job.tenant for _ in range(3) for job in await claims.claim(10)]
    assert "small" in first


async def test_two_nodes_that_run_maintenance_do_everything_once(manual_store, clock, database_url):
    """P16: maintenance is safe on all nodes concurrently."""
    other = await open_store(database_url, clock=CLOCK)
    lost = await hold(manual_store, await enter(manual_store), n=100)
    await put(manual_store, *(a_job(delay=seconds(5)) for _ in range(100)))
    done = await hold(manual_store, await enter(manual_store), n=50)
    await move(manual_store, *(a_transition(job, Status.SUCCEEDED) for job in done))
    await clock.advance(days(30))
    rules = EngineRules(retention=Retention(days(7), days(7)))
    events = []
    engines = [Engine(store, rules, emit=events.append) for store in (manual_store, other)]
    stop = asyncio.Event()

    async def all_ready():
        counts = await engines[0].jobs.counts(JobFilter(status=Status.READY))
        pruned = not await read_all(manual_store, [job.id for job in done])
        return pruned and sum(count.jobs for count in counts) == 200

    try:
        async with asyncio.TaskGroup() as group:
            for engine in engines:
                group.create_task(engine.run_maintenance(stop))
            try:
                await eventually(all_ready)
            finally:
                stop.set()
    finally:
        await other.aclose()
    now = await read_all(manual_store, [job.id for job in lost])
    assert {(*fields(job, "status", "attempts", "fence"), len(attempt_log(job))) for job in now} == {
        (Status.READY, 1, 1, 1)
    }
    assert [event for event in events if isinstance(event, LoopFailed)] == []
    assert sum(event.jobs for event in events) == 100


@pytest.mark.slow
async def test_maintenance_continues_after_the_database_was_unavailable(manual_store, clock):
    """P16, L3"""
    await hold(manual_store, await enter(manual_store), n=5)
    await clock.expire()
    events = []
    engine = Engine(FaultyStore(manual_store, *[before(Unavailable)] * 6), emit=events.append)
    stop = asyncio.Event()

    async def reaped():
        counts = await manual_store.read(lambda tx: tx.counts(JobFilter(status=Status.READY)))
        return sum(count.jobs for count in counts) == 5

    async with asyncio.TaskGroup() as group:
        group.create_task(engine.run_maintenance(stop))
        try:
            await eventually(reaped)
        finally:
            stop.set()
    assert any(isinstance(event, LoopFailed) for event in events)


async def test_ten_nodes_that_start_under_load_claim_disjoint_jobs(manual_store):
    """S6, L4: a node that starts does not reclaim the jobs of others."""
    held = await hold(manual_store, await enter(manual_store), n=20)
    for _ in range(10):
        engine = await Engine.open(manual_store)
        worker = a_worker()
        await engine.workers.register(worker, seconds(15))
        assert await take(manual_store, worker.id) == []
    assert await read_all(manual_store, [job.id for job in held]) == held
