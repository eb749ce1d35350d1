"""Settler: outcomes are reported in batches until they are accepted."""

import asyncio

import msgspec
import pytest

from holdfast.errors import OutcomeUnknown, Rejected, Unavailable
from holdfast.model.outcome import Failed, Succeeded
from holdfast.worker.running.settler import BATCH_SIZE, Settler
from tests.unit.worker.conftest import a_job

DONE = Succeeded(b"null")


@pytest.fixture
async def settler(script):
    made = Settler(script)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def held(script, n):
    """Return jobs that the worker holds."""
    jobs = [a_job() for _ in range(n)]
    script.held |= {job.id: job for job in jobs}
    return jobs


async def test_outcomes_that_arrive_during_a_report_are_sent_as_a_batch(settler, script):
    script.settling.clear()
    jobs = held(script, 1_202)
    for job in jobs[:2]:  # one for each concurrent report
        settler.put(job, DONE)
        await asyncio.sleep(0.01)
    for job in jobs[2:]:
        settler.put(job, DONE)
    script.settling.set()
    assert await settler.flush(30)
    assert sorted(len(batch) for batch in script.batches) == sorted([1, 1, BATCH_SIZE, BATCH_SIZE, 200])
    assert settler.pending == set()


async def test_an_outcome_is_pending_until_it_is_accepted(settler, script):
    script.settling.clear()
    (job,) = held(script, 1)
    settler.put(job, DONE)
    assert settler.pending == {(job.id, job.fence)}
    assert not await settler.flush(0.05)
    script.settling.set()
    assert await settler.flush(30)
    assert settler.pending == set()


async def test_two_attempts_of_a_job_are_reported_in_two_batches(settler, script):
    """S7: one batch has at most one transition of each job, so that the change log counts what was applied."""
    script.settling.clear()
    blocking, other = held(script, 2), held(script, 1)
    for job in blocking:  # one for each concurrent report
        settler.put(job, DONE)
        await asyncio.sleep(0.01)
    first = other[0]
    second = msgspec.structs.replace(first, fence=first.fence + 1)
    settler.put(first, DONE)
    settler.put(second, DONE)
    script.settling.set()
    assert await settler.flush(30)
    assert sorted(len(batch) for batch in script.batches) == [1, 1, 1, 1]
    assert settler.pending == set()


@pytest.mark.parametrize("error", [Unavailable("away"), OutcomeUnknown("broke at the commit")], ids=["away", "unknown"])
async def test_outcomes_are_kept_while_the_database_is_unavailable(settler, script, error):
    """F08, P07"""
    script.settle_faults.extend([error] * 3)
    (job,) = held(script, 1)
    settler.put(job, DONE)
    assert await settler.flush(30)
    assert script.outcome_of(job) == DONE
    assert len(script.batches) == 4


async def test_the_settler_waits_as_long_as_the_node_asks(settler, script, monkeypatch):
    """A node answers 429 and 503 with `Retry-After`."""
    busy, delays, sleep = Unavailable("429"), [], asyncio.sleep
    busy.retry_after = 7.0

    async def record(delay):
        delays.append(delay)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", record)
    script.settle_faults.append(busy)
    (job,) = held(script, 1)
    settler.put(job, DONE)
    assert await settler.flush(30)
    assert 7.0 in delays


async def test_a_report_for_a_job_that_is_no_longer_held_is_counted(settler, script):
    """S7: another worker holds the job by then."""
    mine, lost = held(script, 1)[0], a_job()
    settler.put(mine, DONE)
    settler.put(lost, DONE)
    assert await settler.flush(30)
    assert settler.refused == 1
    assert [report.job.id for report in script.reports] == [mine.id]


async def test_a_value_that_the_database_rejects_fails_only_its_own_job(settler, script):
    script.settling.clear()
    blocker, good, bad = held(script, 3)
    for job in (blocker, a_job()):
        settler.put(job, DONE)
        await asyncio.sleep(0.01)
    settler.put(good, DONE)
    settler.put(bad, Succeeded(b'"refused"'))
    original = script.settle_many

    async def refusing(reports):
        if any(report.outcome == Succeeded(b'"refused"') for report in reports):
            raise Rejected("invalid byte sequence")
        return await original(reports)

    script.settle_many = refusing
    script.settling.set()
    await script.outcomes(blocker, good, bad)
    assert script.outcome_of(good) == DONE
    failed = script.outcome_of(bad)
    assert isinstance(failed, Failed)
    assert (failed.failure.kind, failed.retryable) == ("ResultRefused", False)


async def test_nothing_is_reported_after_the_lease_is_lost(settler, script):
    """P41: the backend would reject it."""
    script.settle_faults.append(Unavailable("away"))
    jobs = held(script, 2)
    settler.put(jobs[0], DONE)
    await asyncio.sleep(0.01)
    settler.drop()
    settler.put(jobs[1], DONE)
    await settler.flush(30)
    assert script.reports == []
