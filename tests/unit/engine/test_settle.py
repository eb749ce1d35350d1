"""Settling: each outcome is applied once, even if the reply to its commit was lost."""

import asyncio

import pytest

from holdfast.engine.engine import Engine, EngineRules
from holdfast.errors import OutcomeUnknown, Unavailable
from holdfast.model.job import RetryRule
from holdfast.model.outcome import (
    BackendUnavailable,
    CancelledByHandler,
    Crashed,
    Failed,
    Failure,
    Interrupted,
    Report,
    Snoozed,
    Succeeded,
    TimedOut,
)
from holdfast.model.state import Status
from holdfast.model.time import Duration, days, seconds
from holdfast.policy.lifecycle import MAX_RELEASES, attempt_log
from tests.support.builders import (
    LEASE,
    a_job,
    a_transition,
    as_dict,
    enter,
    error,
    fields,
    hold,
    lane_of,
    move,
    put,
    read,
    read_all,
    reap_once,
    running,
    take,
)
from tests.support.interleave import CountingStore, FaultyStore, after, before

ENDINGS = [
    (Succeeded(b'"done"'), Status.SUCCEEDED, 1),
    (Failed(Failure("E", "m")), Status.RETRYING, 1),
    (Failed(Failure("E", "m"), retry_in=seconds(77)), Status.RETRYING, 1),
    (Failed(Failure("E", "m"), retry_in=Duration(0)), Status.READY, 1),
    (Failed(Failure("E", "m"), retryable=False), Status.DEAD, 1),
    (TimedOut(seconds(30)), Status.RETRYING, 1),
    (Crashed("signal 9 (SIGKILL)"), Status.READY, 1),
    (Snoozed(seconds(60)), Status.SCHEDULED, 0),
    (Interrupted(), Status.READY, 0),
    (BackendUnavailable(Failure("E", "m")), Status.SCHEDULED, 0),
    (CancelledByHandler("not needed"), Status.CANCELLED, 1),
]
NAMES = [
    "succeeded",
    "failed",
    "retry-in",
    "retry-now",
    "not-retryable",
    "timed-out",
    "crashed",
    "snoozed",
    "interrupted",
    "unavailable",
    "cancelled-by-handler",
]


@pytest.mark.parametrize("outcome, status, attempts", ENDINGS, ids=NAMES)
async def test_every_outcome_leads_to_its_state(manual_store, outcome, status, attempts):
    """S4"""
    job = await running(manual_store)
    assert await Engine(manual_store).attempts.settle(job, outcome)
    assert fields(await read(manual_store, job), "status", "attempts", "fence") == (status, attempts, 1)


@pytest.mark.parametrize("outcome, status, attempts", ENDINGS, ids=NAMES)
async def test_a_settle_whose_commit_reply_was_lost_returns_true(manual_store, outcome, status, attempts):
    """S4, F10: the commit had happened."""
    job = await running(manual_store)
    turns = (
        [after(OutcomeUnknown)] if type(outcome) is Succeeded else [None, after(OutcomeUnknown)]
    )  # other outcomes read the clock first
    engine = Engine(FaultyStore(manual_store, *turns))
    assert await engine.attempts.settle(job, outcome)
    settled = await read(manual_store, job)
    assert fields(settled, "status", "attempts") == (status, attempts)
    assert len(attempt_log(settled)) <= 1


async def test_a_settle_whose_commit_request_was_lost_is_applied(manual_store):
    """F10: the commit had not happened."""
    job = await running(manual_store)
    assert await Engine(FaultyStore(manual_store, before(OutcomeUnknown))).attempts.settle(job, Succeeded())
    assert (await read(manual_store, job)).status is Status.SUCCEEDED


async def test_a_stale_settle_whose_commit_reply_was_lost_returns_false(manual_store, clock):
    """S7"""
    job = await running(manual_store)
    await clock.expire()
    await reap_once(manual_store)
    (again,) = await take(manual_store, await enter(manual_store), lane_of(job))
    assert not await Engine(FaultyStore(manual_store, after(OutcomeUnknown))).attempts.settle(job, Succeeded())
    assert await read(manual_store, job) == again


async def test_a_settle_can_be_repeated_after_the_database_was_unavailable(manual_store):
    job = await running(manual_store)
    engine = Engine(FaultyStore(manual_store, before(Unavailable)))
    with pytest.raises(Unavailable):
        await engine.attempts.settle(job, Succeeded())
    assert await engine.attempts.settle(job, Succeeded())
    assert not await engine.attempts.settle(job, Succeeded())


async def test_concurrent_settles_share_transactions(manual_store):
    jobs = await hold(manual_store, await enter(manual_store), n=200)
    counting = CountingStore(manual_store)
    engine = Engine(counting)
    assert all(await asyncio.gather(*(engine.attempts.settle(job, Succeeded()) for job in jobs)))
    assert counting.transactions <= 20
    assert {job.status for job in await read_all(manual_store, [job.id for job in jobs])} == {Status.SUCCEEDED}


async def test_each_settle_of_a_group_gets_its_own_result(manual_store):
    """S7"""
    jobs = await hold(manual_store, await enter(manual_store), n=40)
    await move(manual_store, *(a_transition(job, Status.CANCELLED) for job in jobs[::4]))
    engine = Engine(manual_store)
    results = await asyncio.gather(
        *(engine.attempts.settle(job, error() if number % 2 else Succeeded()) for number, job in enumerate(jobs))
    )
    assert results == [bool(number % 4) for number in range(40)]


@pytest.mark.parametrize("other", [1, 4, 8, 9], ids=[NAMES[number] for number in (1, 4, 8, 9)])
async def test_a_job_settled_twice_concurrently_is_settled_once(manual_store, console, other):
    """S1: even if both reports are in one batch; each caller gets the correct result."""
    jobs = await hold(manual_store, await enter(manual_store), n=20)
    engine = Engine(manual_store)
    outcome, status, _ = ENDINGS[other]
    first = asyncio.gather(*(engine.attempts.settle(job, Succeeded()) for job in jobs))
    second = asyncio.gather(*(engine.attempts.settle(job, outcome) for job in jobs))
    results = dict(zip((job.id for job in jobs), zip(await first, await second, strict=True), strict=True))
    now = await read_all(manual_store, [job.id for job in jobs])
    assert [job.id for job in now] == [job.id for job in jobs]
    expected = {job.id: (job.status is Status.SUCCEEDED, job.status is status) for job in now}
    assert results == expected


async def test_a_retry_waits_as_long_as_the_rule_says(manual_store, clock):
    """S9"""
    rule = RetryRule(base=seconds(2), cap=seconds(50), jitter=0.25)
    engine = Engine(manual_store, EngineRules(retry=rule))
    worker = await enter(manual_store, lease=days(100))
    job = a_job(max_attempts=9)
    await put(manual_store, job)
    for attempt in range(1, 9):
        (held,) = await take(manual_store, worker)
        assert await engine.attempts.settle(held, error())
        waits = await read(manual_store, job)
        plain = min(seconds(50), seconds(2) * 2 ** (attempt - 1))
        wait = waits.scheduled_at - clock.now
        assert 0.75 * plain <= wait <= 1.25 * plain
        await clock.advance(Duration(wait - 1))
        assert await manual_store.single(lambda tx: tx.promote(10)) == 0
        await clock.advance(Duration(1))
        assert await manual_store.single(lambda tx: tx.promote(10)) == 1
    (held,) = await take(manual_store, worker)
    assert await engine.attempts.settle(held, error())
    assert fields(await read(manual_store, job), "status", "attempts") == (Status.DEAD, 9)


async def test_the_retry_rule_of_a_job_overrides_the_default(manual_store, clock):
    job = await running(manual_store, retry=RetryRule(delays=(seconds(7), seconds(11)), jitter=0.0))
    await Engine(manual_store).attempts.settle(job, error())
    assert (await read(manual_store, job)).scheduled_at == clock.now + seconds(7)


async def test_a_job_cannot_be_released_without_limit(manual_store):
    """S8: releases use no attempt, but their number is bounded."""
    engine, worker = Engine(manual_store), await enter(manual_store)
    job = a_job()
    await put(manual_store, job)
    starts = 0
    while held := await take(manual_store, worker):
        starts += 1
        assert await engine.attempts.settle(held[0], Interrupted())
    assert starts == MAX_RELEASES + 1
    assert (await read(manual_store, job)).status is Status.DEAD


async def test_reports_with_different_outcomes_are_settled_in_one_transaction(manual_store):
    jobs = await hold(manual_store, await enter(manual_store), n=len(ENDINGS))
    reports = [Report(job, outcome) for job, (outcome, _, _) in zip(jobs, ENDINGS, strict=True)]
    assert await Engine(manual_store).attempts.settle_many(reports) == {job.id for job in jobs}
    now = await read_all(manual_store, [job.id for job in jobs])
    assert [(job.status, job.attempts) for job in now] == [ending[1:] for ending in ENDINGS]


async def test_a_worker_that_does_not_renew_in_time_loses_its_jobs(manual_store, clock):
    """S7"""
    engine = Engine(manual_store)
    worker = await enter(manual_store)
    (job,) = await hold(manual_store, worker)
    assert await engine.workers.renew(worker, LEASE)
    await clock.expire()
    assert not await engine.workers.renew(worker, LEASE)
    await reap_once(manual_store)
    before = await read(manual_store, job)
    assert not await engine.attempts.settle(job, Succeeded())
    assert as_dict(await read(manual_store, job)) == as_dict(before)
